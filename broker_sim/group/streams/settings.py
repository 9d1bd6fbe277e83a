"""The configurations of streams groups: the broker's, and those set on one group.

Mirrors the streams groups' part of `GroupCoordinatorConfig` and of `GroupConfig`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.modern.group_configs import GroupConfigs
from broker_sim.group.streams.assignors.spec import NUM_STANDBY_REPLICAS

if TYPE_CHECKING:
    from broker_sim.group.environment import GroupEnvironment

ASSIGNMENT_INTERVAL: Final = "group.streams.assignment.interval.ms"


class StreamsGroupSettings:
    """Reads configurations when they are needed: they can change while groups live."""

    __slots__ = ("_config", "_configs")

    def __init__(self, environment: GroupEnvironment) -> None:
        self._config = environment.config
        self._configs = GroupConfigs(environment)

    @property
    def max_size(self) -> int:
        """The most members of a group."""
        return self._config.group_streams_max_size

    def session_timeout_ms(self, group_id: str) -> int:
        """Return how long a member may be silent."""
        default = self._config.group_streams_session_timeout_ms
        return self._configs.of_group(group_id, "streams.session.timeout.ms", default)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return how often members are told to send heartbeats."""
        default = self._config.group_streams_heartbeat_interval_ms
        return self._configs.of_group(group_id, "streams.heartbeat.interval.ms", default)

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        """Return how long a new group waits for more members before tasks are assigned."""
        default = self._config.group_streams_initial_rebalance_delay_ms
        return self._configs.of_group(group_id, "streams.initial.rebalance.delay.ms", default)

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the shortest time between two targets of the group."""
        default = self._configs.of_brokers(ASSIGNMENT_INTERVAL, self._config.group_streams_assignment_interval_ms)
        return self._configs.of_group(group_id, "streams.assignment.interval.ms", default)

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the configurations that the assignor looks at."""
        default = self._config.group_streams_num_standby_replicas
        replicas = self._configs.of_group(group_id, "streams.num.standby.replicas", default)
        return {NUM_STANDBY_REPLICAS: str(replicas)}
