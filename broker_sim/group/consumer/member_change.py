"""What one request changes of a member, as the steps of `MemberUpdates` pass it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.group_client import GroupClient
    from broker_sim.group.records import GroupRecord


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A member of a group before and after its request."""

    group: ConsumerGroup
    member: ConsumerMember
    updated: ConsumerMember
    client: GroupClient
    owned: Mapping[bytes, Sequence[int]] | None
    """The partitions that the member says that it owns; None if it says nothing."""
    written: list[GroupRecord]
    """The records so far; each step adds its own."""
