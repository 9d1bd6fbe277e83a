"""Configurations that are set at run time, on one group or on brokers; mirrors `GroupConfigManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import group_number
from broker_sim.metadata import GROUP_RESOURCE

if TYPE_CHECKING:
    from broker_sim.group.environment import GroupEnvironment


class GroupConfigs:
    """Looks numbers up in the newest metadata."""

    __slots__ = ("_environment",)

    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment

    def of_group(self, group_id: str, name: str, default: int) -> int:
        """Return what is set on the group itself, within this broker's limits, or the default."""
        environment = self._environment
        value = environment.image().configs_of_resource(GROUP_RESOURCE, group_id).get(name)
        return default if value is None else group_number(environment.config, name, value)

    def of_brokers(self, name: str, default: int) -> int:
        """Return what is set on this broker or on all brokers at run time, or the default."""
        environment = self._environment
        image = environment.image()
        for dynamic in (image.dynamic_broker_configs(environment.broker_id), image.dynamic_cluster_configs()):
            if name in dynamic:
                return int(dynamic[name])
        return default
