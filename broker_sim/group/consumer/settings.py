"""The configurations of groups of the consumer protocol: the broker's, and those set on one group.

Mirrors `GroupCoordinatorConfig` and `GroupConfig`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.consumer.assignors import ASSIGNORS
from broker_sim.group.modern.group_configs import GroupConfigs

if TYPE_CHECKING:
    from broker_sim.config import BrokerConfig
    from broker_sim.group.environment import GroupEnvironment

ASSIGNMENT_INTERVAL: Final = "group.consumer.assignment.interval.ms"

_CLASSES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def offered_assignors(config: BrokerConfig) -> tuple[str, ...]:
    """Return the names of the assignors that are offered; the first is the default."""
    listed = (_CLASSES.get(name, name) for name in config.group_consumer_assignors)
    return tuple(name for name in listed if name in ASSIGNORS) or tuple(ASSIGNORS)


class GroupSettings:
    """Reads configurations when they are needed: they can change while groups live."""

    __slots__ = ("_config", "_configs", "default_assignor")

    def __init__(self, environment: GroupEnvironment) -> None:
        self._config = environment.config
        self._configs = GroupConfigs(environment)
        self.default_assignor = offered_assignors(environment.config)[0]
        """The assignor of groups whose members ask for none."""

    @property
    def max_size(self) -> int:
        """The most members of a group."""
        return self._config.group_consumer_max_size

    def session_timeout_ms(self, group_id: str) -> int:
        """Return how long a member may be silent."""
        default = self._config.group_consumer_session_timeout_ms
        return self._configs.of_group(group_id, "consumer.session.timeout.ms", default)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return how often members are told to send heartbeats."""
        default = self._config.group_consumer_heartbeat_interval_ms
        return self._configs.of_group(group_id, "consumer.heartbeat.interval.ms", default)

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the shortest time between two targets of the group."""
        default = self._configs.of_brokers(ASSIGNMENT_INTERVAL, self._config.group_consumer_assignment_interval_ms)
        return self._configs.of_group(group_id, "consumer.assignment.interval.ms", default)
