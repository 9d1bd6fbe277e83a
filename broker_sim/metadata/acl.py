"""Permissions of principals on resources: one rule, and all rules of the cluster.

Mirrors `StandardAcl`, `AclBindingFilter` and `AclCache`. Deliberate difference: a rule has no id, it is its
own key; and all rules are found by hash tables instead of an ordered tree.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

WILDCARD: Final = "*"
"""The name of any resource, and any host."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of the type CLUSTER."""


class _Code(IntEnum):
    """A code of Kafka's; an unknown code becomes UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None

    __hash__ = int.__hash__  # an enum's own takes longer than all the rest of a lookup


class ResourceType(_Code):
    """Kafka's codes of what can be protected."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """Kafka's codes of how a rule names resources; MATCH is for filters: what a rule would concern."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    """Kafka's codes of what can be done with a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(_Code):
    """Kafka's codes of `AclPermissionType`."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """A rule: what a principal (`User:billing`, or `User:*`) may do, or may not do, from a host (`*`: any)."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def __str__(self) -> str:
        """Return Kafka's text, as it stands in the audit log."""
        return (
            f"StandardAcl(resourceType={self.resource_type.name}, resourceName={self.resource_name},"
            f" patternType={self.pattern_type.name}, principal={self.principal}, host={self.host},"
            f" operation={self.operation.name}, permissionType={self.permission.name})"
        )


class AclFilter(NamedTuple):
    """A filter of rules; ANY and None match all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether the rule is meant."""
        return (
            self._matches_resource(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_resource(self, acl: Acl) -> bool:
        if self.resource_type not in (ResourceType.ANY, acl.resource_type):
            return False
        if self.pattern_type is PatternType.MATCH:
            name = self.resource_name
            if name is None:
                return True
            if acl.pattern_type is PatternType.PREFIXED:
                return name.startswith(acl.resource_name)
            return acl.resource_name in (name, WILDCARD)
        return self.pattern_type in (PatternType.ANY, acl.pattern_type) and self.resource_name in (
            None,
            acl.resource_name,
        )


_ByPrincipal = dict[str, tuple[Acl, ...]]


class _OfType:
    """The rules for resources of one type: by name and then by principal."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self, literal: dict[str, _ByPrincipal], prefixed: dict[str, _ByPrincipal]) -> None:
        self.literal = literal
        self.prefixed = prefixed
        self.lengths = sorted({len(prefix) for prefix in prefixed}, reverse=True)
        """The lengths of all prefixes, the longest first."""

    def table(self, pattern_type: PatternType) -> dict[str, _ByPrincipal]:
        """Return the rules of one kind of names."""
        return self.literal if pattern_type is PatternType.LITERAL else self.prefixed


_NONE_OF_TYPE: Final = _OfType({}, {})


class _Writer:
    """Copies each table that is written to, once."""

    def __init__(self, base: Mapping[ResourceType, _OfType]) -> None:
        self._base = base
        self._tables: dict[tuple[ResourceType, PatternType], dict[str, _ByPrincipal]] = {}
        self._copies: dict[tuple[ResourceType, PatternType, str], _ByPrincipal] = {}

    def principals_of(self, acl: Acl) -> _ByPrincipal:
        """Return the rules of the same pattern, for changes."""
        key = (acl.resource_type, acl.pattern_type, acl.resource_name)
        principals = self._copies.get(key)
        if principals is None:
            table = self._tables.get(key[:2])
            if table is None:
                of_type = self._base.get(acl.resource_type, _NONE_OF_TYPE)
                table = self._tables[key[:2]] = dict(of_type.table(acl.pattern_type))
            principals = self._copies[key] = dict(table.get(acl.resource_name, {}))
            table[acl.resource_name] = principals
        return principals

    def written(self) -> dict[ResourceType, _OfType]:
        """Return the types that were written to, without what is empty now."""
        for (resource_type, pattern_type, name), principals in self._copies.items():
            for principal in [each for each, acls in principals.items() if not acls]:
                del principals[principal]
            if not principals:
                del self._tables[resource_type, pattern_type][name]
        types = {}
        for resource_type in dict.fromkeys(key[0] for key in self._tables):
            old = self._base.get(resource_type, _NONE_OF_TYPE)
            types[resource_type] = _OfType(
                self._tables.get((resource_type, PatternType.LITERAL), old.literal),
                self._tables.get((resource_type, PatternType.PREFIXED), old.prefixed),
            )
        return types


class Acls:
    """All rules of a cluster; never changes. Any thread may read it.

    The rules for a resource are found with one lookup for its name, one for the wildcard and one for each
    length that prefixes have, however many rules there are.
    """

    __slots__ = ("_of_type", "count")

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._of_type: dict[ResourceType, _OfType] = {}
        self.count = 0
        self._change(acls, ())

    def with_changes(self, added: Iterable[Acl], removed: Iterable[Acl]) -> Acls:
        """Return the rules after a change; what does not change is shared."""
        changed = Acls()
        changed._of_type = dict(self._of_type)
        changed.count = self.count
        changed._change(added, removed)
        return changed

    def _change(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        """Change what nobody else has seen yet."""
        writer = _Writer(self._of_type)
        for acl in removed:
            principals = writer.principals_of(acl)
            present = principals.get(acl.principal, ())
            if acl in present:
                principals[acl.principal] = tuple(other for other in present if other != acl)
                self.count -= 1
        for acl in added:
            principals = writer.principals_of(acl)
            present = principals.get(acl.principal, ())
            if acl not in present:
                principals[acl.principal] = (*present, acl)
                self.count += 1
        self._of_type.update(writer.written())

    def for_resource(self, resource_type: ResourceType, name: str) -> list[Mapping[str, tuple[Acl, ...]]]:
        """Return the rules that concern a resource, each group of them by principal.

        First those of its name, then those of its prefixes, the longest first, then the wildcard's.
        """
        rules = self._of_type.get(resource_type)
        if rules is None:
            return []
        groups: list[Mapping[str, tuple[Acl, ...]]] = []
        group = rules.literal.get(name)
        if group is not None:
            groups.append(group)
        for length in rules.lengths:
            if length <= len(name):
                group = rules.prefixed.get(name[:length])
                if group is not None:
                    groups.append(group)
        if name != WILDCARD:
            group = rules.literal.get(WILDCARD)
            if group is not None:
                groups.append(group)
        return groups

    def of_principals(self, resource_type: ResourceType, principals: tuple[str, ...]) -> Iterator[Acl]:
        """Return the rules of these principals for any resource of the type."""
        rules = self._of_type.get(resource_type, _NONE_OF_TYPE)
        for table in (rules.literal, rules.prefixed):
            for group in table.values():
                for principal in principals:
                    yield from group.get(principal, ())

    def matching(self, acl_filter: AclFilter) -> list[Acl]:
        """Return the rules that a filter means, in their order."""
        return sorted(acl for acl in self if acl_filter.matches(acl))

    def __iter__(self) -> Iterator[Acl]:
        for rules in self._of_type.values():
            for table in (rules.literal, rules.prefixed):
                for group in table.values():
                    for acls in group.values():
                        yield from acls

    def __len__(self) -> int:
        return self.count

    def __contains__(self, acl: object) -> bool:
        if not isinstance(acl, Acl):
            return False
        table = self._of_type.get(acl.resource_type, _NONE_OF_TYPE).table(acl.pattern_type)
        return acl in table.get(acl.resource_name, {}).get(acl.principal, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acls) and set(self) == set(other)

    def __hash__(self) -> int:
        return hash(frozenset(self))


NO_ACLS: Final = Acls()
