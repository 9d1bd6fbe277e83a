"""The configurations of streams groups: the broker's, and those set on one group.

Mirrors the streams groups' part of `GroupCoordinatorConfig` and of `GroupConfig`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.modern.group_configs import GroupConfigs
from broker_sim.group.streams.assignors.spec import NUM_STANDBY_REPLICAS

if TYPE_CHECKING:
    from broker_sim.group.environment import GroupEnvironment

__all__ = ["StreamsGroupSettings"]

ASSIGNMENT_INTERVAL: Final = "group.streams.assignment.interval.ms"


class StreamsGroupSettings:
    """Reads configurations when they are needed: they can change while groups live."""

    __slots__ = ("_configs", "_environment")

    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment
        self._configs = GroupConfigs(environment)

    @property
    def max_size(self) -> int:
        """The most members of a group."""
        return self._environment.config.group_streams_max_size

    def session_timeout_ms(self, group_id: str) -> int:
        """Return how long a member may be silent."""
        own = self._configs.own(group_id, "streams.session.timeout.ms")
        config = self._environment.config
        return config.group_streams_session_timeout_ms if own is None else own

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return how often members are told to send heartbeats."""
        own = self._configs.own(group_id, "streams.heartbeat.interval.ms")
        config = self._environment.config
        return config.group_streams_heartbeat_interval_ms if own is None else own

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        """Return how long a new group waits for more members before tasks are assigned."""
        own = self._configs.own(group_id, "streams.initial.rebalance.delay.ms")
        config = self._environment.config
        return config.group_streams_initial_rebalance_delay_ms if own is None else own

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the shortest time between two targets of the group."""
        own = self._configs.own(group_id, "streams.assignment.interval.ms")
        if own is None:
            own = self._configs.of_brokers(ASSIGNMENT_INTERVAL)
        config = self._environment.config
        return config.group_streams_assignment_interval_ms if own is None else own

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the configurations that the assignor looks at."""
        own = self._configs.own(group_id, "streams.num.standby.replicas")
        config = self._environment.config
        replicas = config.group_streams_num_standby_replicas if own is None else own
        return {NUM_STANDBY_REPLICAS: str(replicas)}
