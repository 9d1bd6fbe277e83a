"""Verbs on groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import waiting_verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import GivenValue


class GroupVerbs(BaseVerbs):
    """What can be done to groups of consumers."""

    @waiting_verb(path="/groups/{group_id}/configs")
    async def set_group_configs(self, group_id: str, configs: Mapping[str, GivenValue] | None = None) -> None:
        """Set configurations of a group, such as `share.auto.offset.reset`; others stay as they are.

        The group may come later. Returns when every running broker that can be reached knows. Raises
        ApiError as IncrementalAlterConfigs, ValueError without any.
        """
        from broker_sim.config import to_texts  # noqa: PLC0415 - see `Verbs`
        from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType  # noqa: PLC0415 - see `Verbs`
        from broker_sim.errors import ApiError  # noqa: PLC0415 - see `Verbs`
        from broker_sim.runtime.arguments import check_can_be_sent  # noqa: PLC0415 - see `Verbs`

        if not configs:
            raise ValueError("say which configurations, such as share.auto.offset.reset=earliest")
        texts = to_texts(configs)
        check_can_be_sent(group_id, *texts, *texts.values())
        changes = [ConfigAlteration(name, AlterOp.SET, text) for name, text in texts.items()]
        resource = ConfigResource(ConfigResourceType.GROUP, group_id)
        controller = self.nodes.controller
        ((_, outcome),) = controller.incremental_alter_configs([(resource, changes)])
        if not outcome.ok:
            raise ApiError(outcome.error_code, outcome.error_message or "")
        what = f"the brokers to hear of the configurations of group {group_id}"
        await self._until_heard_of(controller.image.version, what)
