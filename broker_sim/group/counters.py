"""What the group coordinator counts; mirrors the sensors of `GroupCoordinatorMetrics`."""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounters:
    """What has happened since the broker's start."""

    offset_commits: int = 0
    offset_deletions: int = 0
    """By OffsetDelete; those of deleted groups and topics are not counted, as in Kafka."""
    offset_expirations: int = 0
    classic_group_rebalances: int = 0
    """Generations of classic groups whose assignments were stored."""
    consumer_group_rebalances: int = 0
    """New group epochs, but not those after a member was fenced, as in Kafka. So of the others."""
    share_group_rebalances: int = 0
    streams_group_rebalances: int = 0

    def count_rebalance(self, kind: str) -> None:
        """Count a new group epoch of a group of that kind, such as `consumer`."""
        name = f"{kind}_group_rebalances"
        setattr(self, name, getattr(self, name) + 1)
