"""Changes of configurations on their way through a broker; mirrors `ConfigAdminManager`.

A broker accepts changes of its own and of the cluster-wide broker configuration, but not of another
broker's. It changes its log levels itself. The controller checks the rest; the response has the errors of
both.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.controller import ConfigResource, ConfigResourceType, Outcome
from broker_sim.errors import ERROR_TEXTS, ApiError, ConfigError, ErrorCode, MissingExtraError
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.controller import Controller
    from broker_sim.handlers.context import BrokerServices, RequestContext
    from broker_sim.protocol import messages

    RequestedResource = (
        messages.AlterConfigsRequest.AlterConfigsResource
        | messages.IncrementalAlterConfigsRequest.AlterConfigsResource
        | messages.DescribeConfigsRequest.DescribeConfigsResource
    )
    Resource = TypeVar("Resource", bound=RequestedResource)

BROKER_LOGGER: Final = 8
"""The resource type that the broker changes itself."""

_INTEGER = re.compile(r"[+-]?\d+")
_MAX_DIGITS = 100

_PROTECTED: Final[Mapping[int, ResourceType]] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
}
"""Config resources with a resource type of their own for ACLs; all others need permissions on the cluster."""


Change = TypeVar("Change")
Result = TypeVar("Result")
Changes = list[tuple[ConfigResource, Change]]


def alter_configs_of(
    context: RequestContext,
    resources: Sequence[Resource],
    change_of: Callable[[ConfigResourceType, Resource], Change],
    configs_after: Callable[[Mapping[str, str], Change], Mapping[str, str]],
    verb: Callable[[Controller, Changes[Change]], Sequence[tuple[ConfigResource, Outcome]]],
    result_type: Callable[[ErrorCode, str | None, int, str], Result],
    on_results: Callable[[list[Result]], None],
    alter_loggers: Callable[[Resource], None] | None = None,
) -> None:
    """Apply `verb` at the controller to the resources that may be changed through this broker.

    `change_of` returns the change of a resource of a known type, or raises ApiError; `configs_after` returns a
    broker's configurations after the change; `result_type` makes a result from error code, error message, type
    and name. `on_results` gets one result for each resource, in order, once the controller has answered.
    `alter_loggers` changes this broker's loggers or raises ApiError; without it BROKER_LOGGER is an unknown type.
    """
    broker = context.broker
    counts = Counter(_key(resource) for resource in resources)
    outcomes: dict[tuple[int, str], Outcome] = {}
    changes: Changes[Change] = []
    for resource in resources:
        try:
            _check_named_once(counts[_key(resource)])
            if resource.resource_type == BROKER_LOGGER and alter_loggers is not None:
                check_config_access(context, AclOperation.ALTER_CONFIGS, resource)
                alter_loggers(resource)
                outcomes[_key(resource)] = Outcome()
                continue
            target = _target(None if context.is_for_controller else broker.broker_id, resource)
            check_config_access(context, AclOperation.ALTER_CONFIGS, resource)
            change = change_of(target.type, resource)
            if target.type is ConfigResourceType.BROKER and not context.is_for_controller:
                _check_here(broker, target.name, configs_after, change)
            changes.append((target, change))
        except ApiError as error:
            outcomes[_key(resource)] = Outcome(error.error_code, error.error_message)

    def result(resource: Resource, outcome: Outcome) -> Result:
        return result_type(outcome.error_code, outcome.error_message, *_key(resource))

    def answer(applied: Sequence[tuple[ConfigResource, Outcome]]) -> None:
        outcomes.update({(target.type, target.name): outcome for target, outcome in applied})
        on_results([result(resource, outcomes[_key(resource)]) for resource in resources])

    def refuse(error: ApiError) -> None:
        answer([(target, Outcome(error.error_code, error.error_message)) for target, _ in changes])

    if changes:
        broker.controller.call(lambda controller: verb(controller, changes), answer, refuse)
    else:
        answer(())


def _check_here(
    broker: BrokerServices,
    name: str,
    configs_after: Callable[[Mapping[str, str], Change], Mapping[str, str]],
    change: Change,
) -> None:
    """Raise ApiError if the change makes this broker's configuration invalid; an empty name is for all brokers."""
    of_all, own = broker.image.dynamic_cluster_configs(), broker.image.dynamic_broker_configs(broker.broker_id)
    if name:
        own = configs_after(own, change)
    else:
        of_all = configs_after(of_all, change)
    try:
        broker.check_dynamic_configs(of_all, own, name)
    except (ConfigError, MissingExtraError) as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None


def check_config_access(context: RequestContext, operation: AclOperation, resource: RequestedResource) -> None:
    """Raise ApiError unless the client may perform the operation on the resource's configurations."""
    kind, name = _PROTECTED.get(resource.resource_type, ResourceType.CLUSTER), CLUSTER_NAME
    if kind is not ResourceType.CLUSTER:
        name = resource.resource_name
    error_code = authorization_error(context, operation, kind, name)
    if error_code:
        is_logger = resource.resource_type == BROKER_LOGGER
        raise ApiError(error_code, "" if is_logger else ERROR_TEXTS[error_code])


def _key(resource: RequestedResource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _check_named_once(times: int) -> None:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def _target(broker_id: int | None, resource: RequestedResource) -> ConfigResource:
    """Return the resource as the controller identifies it. Raises ApiError INVALID_REQUEST.

    The only broker that may be changed is `broker_id`; None allows every broker, as at the controller.
    """
    try:
        resource_type = ConfigResourceType(resource.resource_type)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}") from None
    name = resource.resource_name
    if resource_type is ConfigResourceType.BROKER and name and broker_id is not None:
        check_own_id(broker_id, name, "Unexpected broker id, expected {}, but received {}")
    return ConfigResource(resource_type, name)


def id_named(name: str) -> int | None:
    """Return the number as parsed by Java's `Integer.parseInt`, or None."""
    if len(name) > _MAX_DIGITS or not _INTEGER.fullmatch(name):
        return None
    number = int(name)
    return number if -(1 << 31) <= number < 1 << 31 else None


def check_own_id(broker_id: int, name: str, otherwise: str) -> None:
    """Raise ApiError with INVALID_REQUEST unless `name` is this broker's id.

    `otherwise` is the error message for another id, a format string for both ids.
    """
    requested_id = id_named(name)
    if requested_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if requested_id != broker_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, otherwise.format(broker_id, name))
