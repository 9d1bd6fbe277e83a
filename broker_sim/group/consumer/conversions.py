"""What a consumer group asks for when a member of the other protocol comes, or the last one goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.decision import Decision
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.group import Group

__all__ = ["Conversions"]


class Conversions(Protocol):
    """Moves groups between the protocols; see `broker_sim.group.migration`."""

    def upgrade(self, group: Group, decision: Decision) -> ConsumerGroup:
        """Return a classic group with members as one of the consumer protocol."""

    def must_downgrade(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Return whether without these members it becomes a classic group, and may."""

    def must_downgrade_for(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether it becomes one when a classic member takes a static member's place."""

    def downgrade_without(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember], decision: Decision
    ) -> None:
        """Make it a classic group of the other members, which rebalance."""

    def downgrade_with(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        joining: ConsumerMember,
        decision: Decision,
        *,
        is_stale: bool,
    ) -> None:
        """Do the same when `joining` takes the place of a static member."""
