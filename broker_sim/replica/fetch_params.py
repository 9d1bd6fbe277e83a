"""The parameters of a fetch and its results.

Mirrors `FetchParams`, `FetchRequest.PartitionData` and `FetchPartitionData`. A consumer's request
from a socket and a follower's request from a link both take this form, so one code path serves them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol.special_values import CONSUMER_REPLICA_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.errors import ErrorCode
    from broker_sim.log import AbortedTxn
    from broker_sim.protocol.file_view import FileView


class FetchIsolation(Enum):
    """Offset up to which a fetch may read."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    TXN_COMMITTED = "last stable offset"


class FetchParams:
    """Parameters of a fetch for all its partitions; read-only."""

    __slots__ = (
        "as_views",
        "client_id",
        "fetch_only_leader",
        "is_from_follower",
        "isolation",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
    )

    def __init__(
        self,
        *,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation: FetchIsolation,
        replica_id: int = CONSUMER_REPLICA_ID,
        replica_epoch: int = -1,
        has_client_metadata: bool = True,
        client_id: str | None = None,
        rack_id: str = "",
        as_views: bool = False,
    ) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.client_id = client_id
        self.rack_id = rack_id
        self.as_views = as_views
        """Whether records may be returned as views of files."""
        self.is_from_follower = replica_id >= 0
        # Before version 11 (KIP-392) a consumer's fetch carries no rack, and only the leader serves it.
        self.fetch_only_leader = self.is_from_follower or not has_client_metadata


class FetchPartition:
    """Where to read one partition; read-only. An epoch of -1 is not in the request."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "topic_id",
    )

    def __init__(
        self,
        *,
        fetch_offset: int,
        max_bytes: int,
        topic_id: bytes = NO_TOPIC_ID,
        log_start_offset: int = -1,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None:
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.topic_id = topic_id
        self.log_start_offset = log_start_offset
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch


class FetchPartitionData:
    """The result for one partition: an error, a diverging epoch, or records as pieces of the log."""

    __slots__ = (
        "aborted_transactions",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
        "size_bytes",
        "view",
    )

    def __init__(
        self,
        error_code: ErrorCode,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        records: Sequence[bytes | memoryview] = (),
        size_bytes: int = 0,
        *,
        diverging_epoch: tuple[int, int] | None = None,
        preferred_read_replica: int = -1,
    ) -> None:
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.size_bytes = size_bytes
        self.view: FileView | None = None
        """The records as a view of files, instead of `records`, if the fetch accepts views."""
        self.diverging_epoch = diverging_epoch
        self.preferred_read_replica = preferred_read_replica
        """Broker id that the consumer should fetch from instead; -1 for this broker."""
        self.aborted_transactions: Sequence[AbortedTxn] | None = None
        """Aborted transactions that may overlap the records; None unless the isolation is TXN_COMMITTED."""

    def leave_out_records(self) -> None:
        """Drop the records; the offsets stay."""
        self.records, self.size_bytes, self.view = (), 0, None

    @classmethod
    def failed(cls, error_code: ErrorCode) -> FetchPartitionData:
        """Return a result with an error and nothing else."""
        return cls(error_code, -1, -1, -1)
