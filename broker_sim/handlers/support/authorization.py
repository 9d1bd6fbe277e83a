"""Permission checks of a request's client, in one line for a handler; mirrors `AuthHelper`.

Without an authorizer everything is allowed, and nothing is checked. Deliberate difference: the broker that
receives a request decides, also for operations that the controller performs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.security import Authorizer, parse_super_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.config import BrokerConfig
    from broker_sim.handlers.context import RequestContext
    from broker_sim.security import Decision

    OnDenial = Callable[[RequestContext, AclOperation, ResourceType, str, Decision], object]

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


class RequestAuthorizer:
    """A broker's authorizer, which reports denials."""

    __slots__ = ("_authorizer", "_on_denial")

    def __init__(self, authorizer: Authorizer, on_denial: OnDenial) -> None:
        self._authorizer = authorizer
        self._on_denial = on_denial

    def allows(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_denial: bool,
    ) -> bool:
        """Return whether the client may perform the operation on the resource; report a denial if `logs_denial`."""
        connection = context.connection
        decision = self._authorizer.decide(
            context.broker.image.acls, connection.principal, connection.ip, operation, resource_type, name
        )
        if logs_denial and not decision.is_allowed:
            self._on_denial(context, operation, resource_type, name, decision)
        return decision.is_allowed

    def allows_on_any(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the client may perform the operation on any resource of the type."""
        connection = context.connection
        return self._authorizer.is_allowed_on_any(
            context.broker.image.acls, connection.principal, connection.ip, operation, resource_type
        )


def make_authorizer(config: BrokerConfig, on_denial: OnDenial) -> RequestAuthorizer | None:
    """Return the authorizer of `authorizer.class.name`, if any. Raises ConfigError for invalid `super.users`."""
    if not config.authorizer_class_name:
        return None
    authorizer = Authorizer(
        parse_super_users(config.super_users), allow_everyone_if_no_acl=config.allow_everyone_if_no_acl_found
    )
    return RequestAuthorizer(authorizer, on_denial)


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
    authorizer = context.broker.authorizer
    return authorizer is None or authorizer.allows(context, operation, resource_type, name, logs_denial=logs_denial)


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
    authorizer = context.broker.authorizer
    return authorizer is None or authorizer.allows_on_any(context, operation, resource_type)


def unauthorized_names(
    context: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    logs_denial: bool = True,
) -> AbstractSet[str]:
    """Return the names of the resources on which the client may not perform the operation."""
    authorizer = context.broker.authorizer
    if authorizer is None:
        return _NONE
    return {
        name
        for name in dict.fromkeys(names)
        if not authorizer.allows(context, operation, resource_type, name, logs_denial=logs_denial)
    }


def cluster_operations(context: RequestContext) -> int:
    """Return the client's cluster operations as bits of `AclOperation`; none unless it may describe the cluster."""
    cluster = ResourceType.CLUSTER
    if not is_authorized(context, AclOperation.DESCRIBE, cluster, CLUSTER_NAME):
        return 0
    return authorized_operations(context, cluster, CLUSTER_NAME)


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the client may perform on the resource, as bits of `AclOperation` (KIP-430)."""
    authorizer = context.broker.authorizer
    if authorizer is None:
        return _EVERYTHING[resource_type]
    return sum(
        1 << operation
        for operation in _OPERATIONS[resource_type]
        if authorizer.allows(context, operation, resource_type, name, logs_denial=False)
    )
