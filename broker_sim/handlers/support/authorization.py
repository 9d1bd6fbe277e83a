"""Permission checks of a request's client, in one line for a handler; mirrors `AuthHelper`.

Without an authorizer everything is allowed, and nothing is checked. Deliberate difference: the broker that
receives a request decides, also for operations that the controller performs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.denial_log import DenialStatus
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext

_NONE: Final[AbstractSet[str]] = frozenset()

_ERRORS: Final[Mapping[ResourceType, ErrorCode]] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}

_OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}
"""Operations that exist for each type of resource; mirrors `AclEntry.supportedOperations`."""

_EVERYTHING: Final[Mapping[ResourceType, int]] = {
    resource_type: sum(1 << operation for operation in operations) for resource_type, operations in _OPERATIONS.items()
}


def is_authorized(
    context: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    *,
    logs_denial: bool = True,
) -> bool:
    """Return whether the client may perform the operation on the resource.

    `logs_denial` is False for resources that are only left out of a list.
    """
    broker, connection = context.broker, context.connection
    if broker.authorizer is None:
        return True
    decision = broker.authorizer.decide(
        broker.image.acls, connection.principal, connection.ip, operation, resource_type, name
    )
    if logs_denial and not decision.is_allowed:
        denial = DenialStatus(
            broker.clock.wall_clock_ms(),
            broker.broker_id,
            str(connection.principal),
            connection.ip,
            context.client_id,
            context.api_key.api_name,
            operation.name,
            resource_type.name,
            name,
            decision.rule_text,
        )
        broker.denials.add(denial, broker.clock)
    return decision.is_allowed


def authorization_error(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> ErrorCode:
    """Return NONE if the client may perform the operation, otherwise the error of the resource type."""
    if is_authorized(context, operation, resource_type, name):
        return ErrorCode.NONE
    return _ERRORS[resource_type]


def is_authorized_on_cluster(context: RequestContext, operations: Sequence[AclOperation]) -> bool:
    """Return whether the client may perform any of the operations on the cluster; True without operations.

    Only a denial of the last one is logged.
    """
    cluster = ResourceType.CLUSTER
    return not operations or any(
        is_authorized(context, operation, cluster, CLUSTER_NAME, logs_denial=operation is operations[-1])
        for operation in operations
    )


def is_authorized_on_any(context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
    """Return whether the client may perform the operation on any resource of the type."""
    broker, connection = context.broker, context.connection
    return broker.authorizer is None or broker.authorizer.is_allowed_on_any(
        broker.image.acls, connection.principal, connection.ip, operation, resource_type
    )


def unauthorized_names(
    context: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    logs_denial: bool = True,
) -> AbstractSet[str]:
    """Return the names of the resources on which the client may not perform the operation."""
    if context.broker.authorizer is None:
        return _NONE
    return {
        name
        for name in dict.fromkeys(names)
        if not is_authorized(context, operation, resource_type, name, logs_denial=logs_denial)
    }


def cluster_operations(context: RequestContext) -> int:
    """Return the client's cluster operations as bits of `AclOperation`; none unless it may describe the cluster."""
    cluster = ResourceType.CLUSTER
    if not is_authorized(context, AclOperation.DESCRIBE, cluster, CLUSTER_NAME):
        return 0
    return authorized_operations(context, cluster, CLUSTER_NAME)


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the client may perform on the resource, as bits of `AclOperation` (KIP-430)."""
    if context.broker.authorizer is None:
        return _EVERYTHING[resource_type]
    return sum(
        1 << operation
        for operation in _OPERATIONS[resource_type]
        if is_authorized(context, operation, resource_type, name, logs_denial=False)
    )
