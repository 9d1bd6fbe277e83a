"""The metrics of a broker's group coordinator; mirrors `GroupCoordinatorMetrics`."""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounters:
    """Event counts since the broker's start."""

    offset_commits: int = 0
    offset_deletions: int = 0
    """Offsets deleted by OffsetDelete; as in Kafka, those of deleted groups and topics are not counted."""
    offset_expirations: int = 0
    classic_group_rebalances: int = 0
    """Generations of classic groups with stored assignments."""
    consumer_group_rebalances: int = 0
    """New group epochs; as in Kafka, except those after fencing a member. The same applies to the next two."""
    share_group_rebalances: int = 0
    streams_group_rebalances: int = 0

    def count_rebalance(self, kind: str) -> None:
        """Count a new group epoch for that kind of group, such as `consumer`."""
        name = f"{kind}_group_rebalances"
        setattr(self, name, getattr(self, name) + 1)
