"""Replication throttling (KIP-73); mirrors `ReplicationQuotaManager` and `SimpleRate`.

    leader     data sent to followers: a fetch response leaves out replicas that are not in the ISR
    follower   data that the broker fetches: partitions that are not in sync are not fetched
    moves      data copied between log directories, for all topics

Leader and follower quotas apply to the replicas that the topic lists (`PARTITION:BROKER` or `*`), while their byte
rate exceeds the broker's limit. Bytes of in-sync replicas count too, but these are never throttled. The rate is
measured over `replication.quota.window.num` samples of `replication.quota.window.size.seconds`, from the start of
the oldest one, over at least one sample. With 11 samples of 1 s and a limit of 5 000 bytes per second:

    10 000 bytes in the first fetch   nothing more is sent for 2 s
    10 000 bytes after 10 s           far below the limit: 10 000 bytes in 10 s
    80 000 bytes then                 nothing more is sent until their sample is purged, 11 to 12 s later
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from broker_sim.config import REPLICATION_QUOTA_CONFIGS
from broker_sim.config.definition import MAX_LONG
from broker_sim.quota.rate import MS_PER_SECOND, Rate, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.topic_partition import TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
MOVES_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
_ALL: Final = "*"


class SimpleRate(Rate):
    """The rate per second since the start of the oldest sample."""

    __slots__ = ()

    def window_size_ms(self, now_ms: int) -> int:
        """Return the window that `measure` divides by, in ms."""
        return max(self.elapsed_ms(now_ms), self.sample_ms)


class ReplicationQuotaManager:
    """The throttled replicas of one broker, in one role."""

    def __init__(
        self,
        window: Window,
        clock: Clock,
        broker_id: int,
        topic_configs: Callable[[str], Mapping[str, str]],
        replicas_config: str,
    ) -> None:
        """`topic_configs(topic)` returns the topic's configurations; `replicas_config` lists its throttled replicas."""
        self._clock = clock
        self._broker_id = broker_id
        self._topic_configs = topic_configs
        self._replicas_config = replicas_config
        self._rate = SimpleRate(window)
        self.upper_bound = MAX_LONG
        """Limit in bytes per second."""

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Whether this broker's replica of the partition is throttled."""
        text = self._topic_configs(topic_partition.topic).get(self._replicas_config)
        if not text:
            return False
        partitions = _partitions_of(text, self._broker_id)
        return partitions is None or topic_partition.partition in partitions

    def is_quota_exceeded(self) -> bool:
        """Whether the rate exceeds the limit, so that replicas that are not in sync have to wait."""
        if self.upper_bound == MAX_LONG:
            return False
        return self._rate.measure(self._clock.now_ms()) > self.upper_bound

    def record(self, value: int) -> None:
        """Record bytes of a throttled replica."""
        self._rate.record(value, self._clock.now_ms())


class ReplicationQuotas:
    """The replication quotas of one broker: as leader, as follower, and for moves between log directories."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, broker_id: int, topic_configs: Callable[[str], Mapping[str, str]]
    ) -> None:
        window = Window(
            config.replication_quota_window_num, config.replication_quota_window_size_seconds * MS_PER_SECOND
        )
        parts = (window, clock, broker_id, topic_configs)
        self.leader = ReplicationQuotaManager(*parts, LEADER_REPLICAS)
        self.follower = ReplicationQuotaManager(*parts, FOLLOWER_REPLICAS)
        self.moves = ReplicationQuotaManager(*parts, FOLLOWER_REPLICAS)

    def reconfigure(self, dynamic: Mapping[str, str]) -> None:
        """Apply the broker's dynamic configurations."""
        for name, manager in (
            (LEADER_RATE, self.leader),
            (FOLLOWER_RATE, self.follower),
            (MOVES_RATE, self.moves),
        ):
            bound = REPLICATION_QUOTA_CONFIGS[name].parse(dynamic.get(name, str(MAX_LONG)))
            assert isinstance(bound, int)
            manager.upper_bound = bound


@cache
def _partitions_of(text: str, broker_id: int) -> frozenset[int] | None:
    """Return the partitions whose replicas on that broker are listed in `text`; None means all."""
    if text.strip() == _ALL:
        return None
    replicas = (part.strip().split(":") for part in text.split(",") if part.strip())
    return frozenset(int(partition) for partition, broker in replicas if int(broker) == broker_id)
