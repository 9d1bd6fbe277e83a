"""AlterConfigs (key 33), versions 0-2, deprecated; mirrors `KafkaApis.handleAlterConfigsRequest`.

Behaviour:
* sets the given configurations of a resource and removes all others
* each resource changes completely or not at all
* BROKER_LOGGER is an unknown resource type here

Version notes: 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.handlers.support.config_resources import alter_configs_of
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.controller import ConfigResourceType
    from broker_sim.handlers.context import RequestContext


def handle_alter_configs(
    request: messages.AlterConfigsRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterConfigsResponse], None],
) -> None:
    """Replace the configurations of each resource."""
    alter_configs_of(
        context,
        request.resources,
        _configs,
        _configs_after,
        lambda controller, changes: controller.alter_configs(changes, request.validate_only),
        messages.AlterConfigsResponse.AlterConfigsResourceResponse,
        lambda responses: respond(messages.AlterConfigsResponse(responses=responses)),
    )


def _configs(
    resource_type: ConfigResourceType,  # noqa: ARG001 - all types are read alike
    resource: messages.AlterConfigsRequest.AlterConfigsResource,
) -> list[tuple[str, str | None]]:
    return [(config.name, config.value) for config in resource.configs]


def _configs_after(
    present: Mapping[str, str],  # noqa: ARG001 - all of it is replaced
    change: list[tuple[str, str | None]],
) -> Mapping[str, str]:
    return {name: value for name, value in change if value is not None}
