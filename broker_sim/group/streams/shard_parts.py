"""What all that serves the streams groups of one shard works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_sim.group.modern.member_timers import DelayedStreamsMemberTimeout, MemberTimers
from broker_sim.group.streams.settings import StreamsGroupSettings

if TYPE_CHECKING:
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.environment import GroupEnvironment
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.modern.metadata_hash import TopicHashes


@dataclass(slots=True)
class ShardParts:
    """Made once for each shard; `groups` are those of the shard by id, of all kinds."""

    environment: GroupEnvironment
    runtime: ShardRuntime
    groups: GroupTimeline
    hashes: TopicHashes
    settings: StreamsGroupSettings = field(init=False)
    timers: MemberTimers = field(init=False)

    def __post_init__(self) -> None:
        self.settings = StreamsGroupSettings(self.environment)
        self.timers = MemberTimers(self.environment, DelayedStreamsMemberTimeout)
