"""Changes of configurations on their way through a broker; mirrors `ConfigAdminManager`.

A broker takes changes of its own configuration and of that of all brokers, but not of another
broker's. The levels of its loggers it changes itself. The rest is checked by the controller; the answer
has what was refused here and there.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from broker_sim.controller import ConfigResource, ConfigResourceType, Outcome
from broker_sim.errors import ERROR_TEXTS, ApiError, ConfigError, ErrorCode, MissingExtraError
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.controller import Controller
    from broker_sim.handlers.context import BrokerServices, RequestContext

BROKER_LOGGER: Final = 8
"""The type of the resource that is never the controller's."""

_INTEGER = re.compile(r"[+-]?\d+")
_MOST_DIGITS = 100

_PROTECTED: Final[Mapping[int, ResourceType]] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
}
"""Resources whose configurations have permissions of their own; those of all others are the cluster's."""


class AlterableResource(Protocol):
    """A resource in either of the two requests."""

    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=AlterableResource)
Change = TypeVar("Change")
Result = TypeVar("Result")
Changes = list[tuple[ConfigResource, Change]]


def alter_configs_of(
    context: RequestContext,
    resources: Sequence[Resource],
    change_of: Callable[[ConfigResourceType, Resource], Change],
    wanted_of: Callable[[Mapping[str, str], Change], Mapping[str, str]],
    verb: Callable[[Controller, Changes[Change]], Sequence[tuple[ConfigResource, Outcome]]],
    result_type: Callable[[ErrorCode, str | None, int, str], Result],
    on_results: Callable[[list[Result]], None],
    alter_loggers: Callable[[Resource], None] | None = None,
) -> None:
    """Let the controller apply `verb` to the resources that may be changed from this broker.

    `change_of` returns the change of a resource of a known type, or raises ApiError; `wanted_of` what a
    broker that has these configurations would have after its change; `result_type`
    makes a result of error code, error message, type and name. `on_results` gets one result for
    each resource, in order, when the controller has answered. `alter_loggers` changes the loggers of
    this broker or raises ApiError; without it they are a type that is not known.
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
                _check_here(broker, target.name, wanted_of, change)
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
    wanted_of: Callable[[Mapping[str, str], Change], Mapping[str, str]],
    change: Change,
) -> None:
    """Raise ApiError unless this broker may have the change for it, or with an empty name for all, beside the rest."""
    of_all, own = broker.image.dynamic_cluster_configs(), broker.image.dynamic_broker_configs(broker.broker_id)
    if name:
        own = wanted_of(own, change)
    else:
        of_all = wanted_of(of_all, change)
    try:
        broker.dynamic_config.validate(of_all, own, name)
    except (ConfigError, MissingExtraError) as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None


def check_config_access(context: RequestContext, operation: AclOperation, resource: AlterableResource) -> None:
    """Raise ApiError unless the client may do this with the configurations of the resource."""
    kind, name = _PROTECTED.get(resource.resource_type, ResourceType.CLUSTER), CLUSTER_NAME
    if kind is not ResourceType.CLUSTER:
        name = resource.resource_name
    error_code = authorization_error(context, operation, kind, name)
    if error_code:
        is_logger = resource.resource_type == BROKER_LOGGER
        raise ApiError(error_code, "" if is_logger else ERROR_TEXTS[error_code])


def _key(resource: AlterableResource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _check_named_once(times: int) -> None:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def _target(broker_id: int | None, resource: AlterableResource) -> ConfigResource:
    """Return the resource as the controller names it. Raises ApiError with INVALID_REQUEST.

    Of brokers only `broker_id` may be changed, None: every one, as at the controller.
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
    """Return the number that Java's `Integer.parseInt` reads, or None."""
    if len(name) > _MOST_DIGITS or not _INTEGER.fullmatch(name):
        return None
    number = int(name)
    return number if -(1 << 31) <= number < 1 << 31 else None


def check_own_id(broker_id: int, name: str, otherwise: str) -> None:
    """Raise ApiError with INVALID_REQUEST unless `name` is this broker's id.

    `otherwise` is what is said to another id, with places for both.
    """
    requested_id = id_named(name)
    if requested_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if requested_id != broker_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, otherwise.format(broker_id, name))
