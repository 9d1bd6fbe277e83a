"""IncrementalAlterConfigs (key 44), versions 0-1 (KIP-339).

Mirrors `KafkaApis.handleIncrementalAlterConfigsRequest`.

Behaviour:
* sets, deletes, appends to or subtracts from single configurations of a resource
* each resource changes completely or not at all

Version notes: 1 is flexible.

Left out: see `config_resources`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResourceType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.config_resources import alter_configs_of
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_incremental_alter_configs"]


def handle_incremental_alter_configs(
    request: messages.IncrementalAlterConfigsRequest,
    context: RequestContext,
    respond: Callable[[messages.IncrementalAlterConfigsResponse], None],
) -> None:
    """Change single configurations of each resource."""
    alter_configs_of(
        context.broker,
        request.resources,
        _alterations,
        lambda controller, changes: controller.incremental_alter_configs(
            changes, request.validate_only
        ),
        messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
        lambda responses: respond(messages.IncrementalAlterConfigsResponse(responses=responses)),
    )


def _alterations(
    resource_type: ConfigResourceType,
    resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource,
) -> list[ConfigAlteration]:
    return [
        ConfigAlteration(
            config.name, _alter_op(resource_type, config.config_operation), config.value
        )
        for config in resource.configs
    ]


def _alter_op(resource_type: ConfigResourceType, operation: int) -> AlterOp:
    """Return the operation. Raises ApiError: with a server error except for brokers, as in Kafka."""
    try:
        return AlterOp(operation)
    except ValueError:
        if resource_type is not ConfigResourceType.BROKER:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}") from None
