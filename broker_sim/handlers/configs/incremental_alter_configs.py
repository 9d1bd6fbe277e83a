"""IncrementalAlterConfigs (key 44), versions 0-1 (KIP-339).

Mirrors `KafkaApis.handleIncrementalAlterConfigsRequest`.

Behaviour:
* sets, deletes, appends to or subtracts from single configurations of a resource
* each resource changes completely or not at all
* loggers are those of this broker; their levels last as long as its process

Version notes: 1 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import alter_loggers
from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResourceType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.config_resources import alter_configs_of, check_own_id
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.handlers.context import RequestContext


def handle_incremental_alter_configs(
    request: messages.IncrementalAlterConfigsRequest,
    context: RequestContext,
    respond: Callable[[messages.IncrementalAlterConfigsResponse], None],
) -> None:
    """Change single configurations of each resource."""
    alter_configs_of(
        context,
        request.resources,
        _alterations,
        _configs_after,
        lambda controller, changes: controller.incremental_alter_configs(changes, request.validate_only),
        messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
        lambda responses: respond(messages.IncrementalAlterConfigsResponse(responses=responses)),
        lambda resource: _alter_loggers(context.broker.broker_id, resource, request.validate_only),
    )


def _alterations(
    resource_type: ConfigResourceType, resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource
) -> list[ConfigAlteration]:
    _check_each(resource)
    return [
        ConfigAlteration(config.name, _alter_op(resource_type, config.config_operation), config.value)
        for config in resource.configs
    ]


def _configs_after(present: Mapping[str, str], change: list[ConfigAlteration]) -> Mapping[str, str]:
    """Return the configurations after the change, without APPEND and SUBTRACT, which only the controller applies."""
    configs = dict(present)
    for alteration in change:
        if alteration.op is AlterOp.DELETE:
            configs.pop(alteration.name, None)
        elif alteration.op is AlterOp.SET and alteration.value is not None:
            configs[alteration.name] = alteration.value
    return configs


def _check_each(resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource) -> None:
    """Raise ApiError for a duplicate configuration or a null value; operations are checked later."""
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [
        config.name for config in resource.configs if config.value is None and config.config_operation != AlterOp.DELETE
    ]
    if missing:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")


def _alter_loggers(
    broker_id: int, resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource, validate_only: bool
) -> None:
    """Set and remove log levels; mirrors `RuntimeLoggerManager`. Raises ApiError."""
    _check_each(resource)
    name = resource.resource_name
    check_own_id(broker_id, name, "Unexpected node id. Expected {}, but received {}")
    levels = []
    for config in resource.configs:
        try:
            operation = AlterOp(config.config_operation)
        except ValueError:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        if operation in {AlterOp.APPEND, AlterOp.SUBTRACT}:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{operation.name} operation is not allowed for the BROKER_LOGGER resource"
            )
        levels.append((config.name, None if operation is AlterOp.DELETE else config.value))
    alter_loggers(levels, validate_only=validate_only)


def _alter_op(resource_type: ConfigResourceType, operation: int) -> AlterOp:
    """Return the operation. Raises ApiError: UNKNOWN_SERVER_ERROR except for brokers, as in Kafka."""
    try:
        return AlterOp(operation)
    except ValueError:
        if resource_type is not ConfigResourceType.BROKER:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}") from None
