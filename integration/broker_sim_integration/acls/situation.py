"""A row of the table of rights: a request, and the ACLs set before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.protocol.message import Message

Resource = tuple[ResourceType, str]
_CONFIGS: Final = ("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL")
_OPERATIONS: Final = {
    ResourceType.TOPIC: ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", *_CONFIGS),
    ResourceType.GROUP: ("READ", "DELETE", "DESCRIBE", *_CONFIGS),
    ResourceType.CLUSTER: (*("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "IDEMPOTENT_WRITE"), *_CONFIGS),
    ResourceType.TRANSACTIONAL_ID: ("DESCRIBE", "WRITE", "ALL"),
    ResourceType.DELEGATION_TOKEN: ("DESCRIBE", "ALL"),
    ResourceType.USER: ("CREATE_TOKENS", "DESCRIBE_TOKENS", "ALL"),
}


@dataclass(frozen=True, slots=True)
class GuardedRequest:
    """A request that needs rights on its resources, on all of them or on one.

    `make` gets the id of the topic.
    """

    name: str
    make: Callable[[bytes], Message]
    version: int
    resources: Sequence[Resource]
    before: Callable[[bytes], Message] | None = None
    """Request that the super user sends first, in the same version; made in the same way."""
    has_texts: bool = False
    """Whether error messages are compared."""


def fixed(name: str, message: Message, version: int, *resources: Resource) -> GuardedRequest:
    """Return a request without a topic id."""
    return GuardedRequest(name, lambda _: message, version, resources)


def by_id(name: str, make: Callable[[bytes], Message], version: int, *resources: Resource) -> GuardedRequest:
    """Return a request that contains the topic id."""
    return GuardedRequest(name, make, version, resources)


@dataclass(frozen=True, slots=True)
class Situation:
    """A request and the rules that hold for its sender."""

    request: GuardedRequest
    name: str
    acls: tuple[Acl, ...]


def situations_of(request: GuardedRequest, principal: str) -> Iterator[Situation]:
    """Yield the request without rights, with each right alone, and with all but one.

    Resources are named if several have the same type.
    """
    yield Situation(request, "nothing", ())
    types = [resource_type for resource_type, _ in request.resources]
    for resource in request.resources:
        called = resource[0].name
        if types.count(resource[0]) > 1:
            called += f" {resource[1]}"
        others = [other for other in request.resources if other != resource]
        beside = tuple(_acl(other, principal, "ALL") for other in others)
        for operation in _OPERATIONS[resource[0]]:
            granted = _acl(resource, principal, operation)
            name = f"{called} {operation}"
            yield Situation(request, name, (granted, *beside))
            if operation == "ALL":
                continue
            everything = _acl(resource, principal, "ALL")
            denied = _acl(resource, principal, operation, Permission.DENY)
            yield Situation(request, f"not {name}", (everything, denied, *beside))


def _acl(resource: Resource, principal: str, operation: str, permission: Permission = Permission.ALLOW) -> Acl:
    resource_type, name = resource
    literal = PatternType.LITERAL
    operations = AclOperation[operation]
    return Acl(resource_type, name, literal, principal, "*", operations, permission)
