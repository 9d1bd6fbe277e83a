"""Decides what a principal may do; mirrors `StandardAuthorizer` and `StandardAuthorizerData`.

The decision for an operation on a resource from a host:

A. A super user may do everything.
B. A matching ACL that denies wins, whatever else allows.
C. Otherwise a matching ACL that allows is enough.
D. If the resource has ACLs but none matches, the operation is denied.
E. If the resource has no ACLs, `allow.everyone.if.no.acl.found` decides; by default it is denied.

An ACL matches if it is for the principal or `User:*`; for the host, a range with it, or `*`; and for the operation
or ALL. Allowing READ, WRITE, DELETE or ALTER implies DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS; denying
one of these implies nothing.

Pure: each call gets the ACLs, so one authorizer serves brokers and the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.metadata.acl import WILDCARD, AclOperation, PatternType, Permission
from broker_sim.metadata.cidr import is_in_range
from broker_sim.metadata.kafka_principal import KafkaPrincipal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.acl import Acl, Acls, ResourceType

ANY_PRINCIPAL: Final = "User:*"
"""Principal of an ACL for all users."""

HARDCODED_NAME: Final = "hardcode"
"""Resource name with which Kafka checks for super users, and for permissions on any resource."""

_ONLY_ITSELF: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    operation: frozenset({operation, AclOperation.ALL}) for operation in AclOperation
}
_IMPLIED_BY: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    **_ONLY_ITSELF,
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.ALL,
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.ALL, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    ),
}
"""Operations that imply the key, if an ACL allows them."""


class Decision(NamedTuple):
    """A decision, and its reason: an ACL, or Kafka's name for the case."""

    is_allowed: bool
    rule: Acl | str

    @property
    def rule_text(self) -> str:
        """The reason in the form of Kafka's audit log."""
        return self.rule if isinstance(self.rule, str) else f"MatchingAcl(acl={self.rule})"


_SUPER_USER: Final = Decision(True, "SuperUser")
_DEFAULT_ALLOW: Final = Decision(True, "DefaultAllow")
_DEFAULT_DENY: Final = Decision(False, "DefaultDeny")


def parse_super_users(text: str) -> frozenset[KafkaPrincipal]:
    """Return the principals of `super.users`, which are separated by semicolons. Raises ConfigError."""
    names = (name.strip() for name in text.split(";"))
    return frozenset(KafkaPrincipal.parse(name) for name in names if name)


def make_authorizer(config: BrokerConfig) -> Authorizer | None:
    """Return the authorizer of `authorizer.class.name`, if any. Raises ConfigError for invalid `super.users`."""
    if not config.authorizer_class_name:
        return None
    return Authorizer(
        parse_super_users(config.super_users), allow_everyone_if_no_acl=config.allow_everyone_if_no_acl_found
    )


class Authorizer:
    """Decides by ACLs. Thread-safe."""

    __slots__ = ("_no_acl", "_super_users")

    def __init__(self, super_users: Iterable[KafkaPrincipal] = (), *, allow_everyone_if_no_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._no_acl = _DEFAULT_ALLOW if allow_everyone_if_no_acl else _DEFAULT_DENY

    def decide(
        self,
        acls: Acls,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> Decision:
        """Return whether the principal may perform the operation on the resource, with the reason."""
        if principal in self._super_users:
            return _SUPER_USER  # case A
        groups = acls.for_resource(resource_type, name)
        if not groups:
            return self._no_acl  # case E
        own = str(principal)
        allowing = _IMPLIED_BY[operation]
        denying = _ONLY_ITSELF[operation]
        allowed: Acl | None = None
        for group in groups:
            for acl in (*group.get(own, ()), *group.get(ANY_PRINCIPAL, ())):
                if not _is_from(acl, host):
                    continue
                if acl.permission is Permission.DENY:
                    if acl.operation in denying:
                        return Decision(False, acl)  # case B
                elif acl.operation in allowing:
                    allowed = acl
        return _DEFAULT_DENY if allowed is None else Decision(True, allowed)  # cases D and C

    def is_allowed_on_any(
        self, acls: Acls, principal: KafkaPrincipal, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the principal may perform the operation on any resource of the type (KIP-679).

        Mirrors `Authorizer.authorizeByResourceType`. Implied operations do not count.
        """
        if self.decide(acls, principal, host, operation, resource_type, HARDCODED_NAME).is_allowed:
            return True
        allowed: list[Acl] = []
        denied: set[tuple[PatternType, str]] = set()
        for acl in acls.of_principals(resource_type, (str(principal), ANY_PRINCIPAL)):
            if not _is_from(acl, host):
                continue
            if acl.operation not in _ONLY_ITSELF[operation]:
                continue
            if acl.permission is Permission.ALLOW:
                allowed.append(acl)
            else:
                denied.add((acl.pattern_type, acl.resource_name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(_is_open(acl, denied) for acl in allowed)


def _is_from(acl: Acl, host: str) -> bool:
    """Whether the ACL is for clients with that address."""
    return acl.host in (WILDCARD, host) or is_in_range(acl.host, host)


def _is_open(allowed: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether the ACL allows a resource that none of the denied patterns covers."""
    name = allowed.resource_name
    if allowed.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return True
        if (PatternType.LITERAL, name) in denied:
            return False
    return not any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
