"""A commit of offsets, as the handlers hand it to the coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_RETENTION: Final = -1


class OffsetToCommit(NamedTuple):
    """One partition of a commit."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class OffsetCommit(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit: who commits, in which version of the API, and what."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id_or_member_epoch: int
    api_version: int
    offsets: Sequence[OffsetToCommit]
    retention_time_ms: int = NO_RETENTION
