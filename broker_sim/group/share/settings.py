"""The configurations of share groups: the broker's, and those set on one group.

Mirrors the share groups' part of `GroupCoordinatorConfig` and of `GroupConfig`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.modern.group_configs import GroupConfigs

if TYPE_CHECKING:
    from broker_sim.group.environment import GroupEnvironment

ASSIGNMENT_INTERVAL: Final = "group.share.assignment.interval.ms"


class ShareGroupSettings:
    """Reads configurations when they are needed: they can change while groups live."""

    __slots__ = ("_config", "_configs")

    def __init__(self, environment: GroupEnvironment) -> None:
        self._config = environment.config
        self._configs = GroupConfigs(environment)

    @property
    def max_size(self) -> int:
        """The most members of a group."""
        return self._config.group_share_max_size

    @property
    def initialize_retry_ms(self) -> int:
        """After which the state of share partitions that is not there is asked for again."""
        config = self._config
        return max(config.group_share_initialize_retry_interval_ms, config.offsets_commit_timeout_ms)

    def session_timeout_ms(self, group_id: str) -> int:
        """Return how long a member may be silent."""
        default = self._config.group_share_session_timeout_ms
        return self._configs.of_group(group_id, "share.session.timeout.ms", default)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return how often members are told to send heartbeats."""
        default = self._config.group_share_heartbeat_interval_ms
        return self._configs.of_group(group_id, "share.heartbeat.interval.ms", default)

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the shortest time between two targets of the group."""
        default = self._configs.of_brokers(ASSIGNMENT_INTERVAL, self._config.group_share_assignment_interval_ms)
        return self._configs.of_group(group_id, "share.assignment.interval.ms", default)
