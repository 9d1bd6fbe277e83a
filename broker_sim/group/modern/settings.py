"""The configurations of groups of one kind: static, dynamic, and set on single groups.

Mirrors `GroupCoordinatorConfig`, `GroupConfig` and `GroupConfigManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.config import group_number
from broker_sim.metadata import GROUP_RESOURCE

if TYPE_CHECKING:
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.modern.kind import GroupKind


class GroupSettings:
    """Reads configurations at each use, because they can change at run time."""

    __slots__ = ("_broker", "_kind")

    def __init__(self, broker: BrokerContext, kind: GroupKind) -> None:
        self._broker = broker
        self._kind = kind.name

    @property
    def max_size(self) -> int:
        """Maximum number of members of a group."""
        size: int = self._of_broker("max.size")
        return size

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the session timeout of the group's members."""
        return self.of_group(group_id, "session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return the heartbeat interval of the group's members."""
        return self.of_group(group_id, "heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the minimum interval between two targets of the group; its default is a dynamic configuration."""
        name = f"group.{self._kind}.assignment.interval.ms"
        broker = self._broker
        image = broker.image()
        for dynamic in (image.dynamic_broker_configs(broker.broker_id), image.dynamic_cluster_configs()):
            if name in dynamic:
                return self.of_group(group_id, "assignment.interval.ms", int(dynamic[name]))
        return self.of_group(group_id, "assignment.interval.ms")

    def of_group(self, group_id: str, name: str, default: int | None = None) -> int:
        """Return the group's `KIND.name`, clamped to this broker's limits.

        If it is not set, return `default`, or the broker's `group.KIND.name` if that is None.
        """
        value = self._set_for_group(group_id, name)
        if value is not None:
            return group_number(self._broker.config, f"{self._kind}.{name}", value)
        number: int = self._of_broker(name) if default is None else default
        return number

    def words_of_group(self, group_id: str, name: str) -> tuple[str, ...]:
        """Return the words in the group's `KIND.name`, or if it is not set, in the broker's `group.KIND.name`."""
        text = self._set_for_group(group_id, name)
        if text is not None:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        words: tuple[str, ...] = self._of_broker(name)
        return words

    def _set_for_group(self, group_id: str, name: str) -> str | None:
        return self._broker.image().configs_of_resource(GROUP_RESOURCE, group_id).get(f"{self._kind}.{name}")

    def _of_broker(self, name: str) -> Any:
        return getattr(self._broker.config, f"group_{self._kind}_{name.replace('.', '_')}")
