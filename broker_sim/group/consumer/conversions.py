"""What a consumer group asks for when a member of the other protocol comes, or the last one goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker_sim.coordinator.result import Result
    from broker_sim.errors import ErrorCode
    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.group import Group
    from broker_sim.group.records import GroupRecord

    OnSettled = Callable[[ErrorCode], object] | None

R = TypeVar("R")


class Conversions(Protocol):
    """Moves groups between the protocols; see `broker_sim.group.migration`."""

    def upgrade(self, group: Group, written: list[GroupRecord]) -> ConsumerGroup:
        """Return a classic group with members as one of the consumer protocol."""

    def must_downgrade(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Return whether without these members it becomes a classic group, and may."""

    def must_downgrade_for(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether it becomes one when a classic member takes a static member's place."""

    def downgrade_without(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember], response: R, on_settled: OnSettled
    ) -> Result[R]:
        """Make it a classic group of the other members, which rebalance."""

    def downgrade_with(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        joining: ConsumerMember,
        written: list[GroupRecord],
        response: R,
        on_settled: OnSettled,
        *,
        is_stale: bool,
    ) -> Result[R]:
        """Do the same when `joining` takes the place of a static member."""
