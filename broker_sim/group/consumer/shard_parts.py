"""What all that serves the consumer groups of one shard works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_sim.group.consumer.settings import GroupSettings
from broker_sim.group.modern.member_timers import DelayedMemberTimeout, MemberTimers

if TYPE_CHECKING:
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.consumer.conversions import Conversions
    from broker_sim.group.environment import GroupEnvironment
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.modern.metadata_hash import TopicHashes
    from broker_sim.runtime.event_log import EventLogger


@dataclass(slots=True)
class ShardParts:
    """Made once for each shard; `groups` are those of the shard by id, of both kinds."""

    environment: GroupEnvironment
    runtime: ShardRuntime
    groups: GroupTimeline
    hashes: TopicHashes
    conversions: Conversions
    log: EventLogger
    settings: GroupSettings = field(init=False)
    timers: MemberTimers = field(init=False)

    def __post_init__(self) -> None:
        self.settings = GroupSettings(self.environment)
        self.timers = MemberTimers(self.environment, DelayedMemberTimeout)
