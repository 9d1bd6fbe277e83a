"""Access control: one ACL, filters of ACLs, and all ACLs of the cluster.

Mirrors `StandardAcl`, `AclBindingFilter` and `AclCache`. Deliberate difference: an ACL has no id, it is its
own key; and ACLs are looked up in hash tables instead of an ordered tree.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

WILDCARD: Final = "*"
"""Resource name and host that match all names and hosts."""

CLUSTER_NAME: Final = "kafka-cluster"
"""Name of the only resource of type CLUSTER."""


class _Code(IntEnum):
    """One of Kafka's codes; an unknown number becomes UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None

    __hash__ = int.__hash__  # the hash of Enum takes longer than the rest of a lookup


class ResourceType(_Code):
    """Kafka's codes of resource types."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """Kafka's codes of pattern types. MATCH is for filters only: all ACLs that apply to the resource name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    """Kafka's codes of operations on resources."""

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
    """One ACL: allows or denies a principal (`User:billing`, `User:*`) an operation from a host (`*` for any)."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def __str__(self) -> str:
        """Return Kafka's text for the audit log."""
        return (
            f"StandardAcl(resourceType={self.resource_type.name}, resourceName={self.resource_name},"
            f" patternType={self.pattern_type.name}, principal={self.principal}, host={self.host},"
            f" operation={self.operation.name}, permissionType={self.permission.name})"
        )


class AclFilter(NamedTuple):
    """A filter of ACLs; ANY and None match everything."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether the filter selects the ACL."""
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


class _TypeAcls:
    """The ACLs of one resource type: by resource name, then by principal."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self, literal: dict[str, _ByPrincipal], prefixed: dict[str, _ByPrincipal]) -> None:
        self.literal = literal
        self.prefixed = prefixed
        self.lengths = sorted({len(prefix) for prefix in prefixed}, reverse=True)
        """Lengths of all prefixes, the longest first."""

    def table(self, pattern_type: PatternType) -> dict[str, _ByPrincipal]:
        """Return the ACLs of one pattern type."""
        return self.literal if pattern_type is PatternType.LITERAL else self.prefixed


_NO_TYPE_ACLS: Final = _TypeAcls({}, {})


class _Writer:
    """Copies each table on the first write to it."""

    def __init__(self, base: Mapping[ResourceType, _TypeAcls]) -> None:
        self._base = base
        self._tables: dict[tuple[ResourceType, PatternType], dict[str, _ByPrincipal]] = {}
        self._copies: dict[tuple[ResourceType, PatternType, str], _ByPrincipal] = {}

    def principals_of(self, acl: Acl) -> _ByPrincipal:
        """Return a writable copy of the ACLs with the same pattern, by principal."""
        key = (acl.resource_type, acl.pattern_type, acl.resource_name)
        principals = self._copies.get(key)
        if principals is None:
            table = self._tables.get(key[:2])
            if table is None:
                type_acls = self._base.get(acl.resource_type, _NO_TYPE_ACLS)
                table = self._tables[key[:2]] = dict(type_acls.table(acl.pattern_type))
            principals = self._copies[key] = dict(table.get(acl.resource_name, {}))
            table[acl.resource_name] = principals
        return principals

    def written(self) -> dict[ResourceType, _TypeAcls]:
        """Return the changed resource types, without empty entries."""
        for (resource_type, pattern_type, name), principals in self._copies.items():
            for principal in [each for each, acls in principals.items() if not acls]:
                del principals[principal]
            if not principals:
                del self._tables[resource_type, pattern_type][name]
        types = {}
        for resource_type in dict.fromkeys(key[0] for key in self._tables):
            old = self._base.get(resource_type, _NO_TYPE_ACLS)
            types[resource_type] = _TypeAcls(
                self._tables.get((resource_type, PatternType.LITERAL), old.literal),
                self._tables.get((resource_type, PatternType.PREFIXED), old.prefixed),
            )
        return types


class Acls:
    """All ACLs of a cluster; immutable. Any thread may read it.

    Finding the ACLs of a resource takes one lookup for its name, one for the wildcard and one for each
    distinct prefix length, however many ACLs there are.
    """

    __slots__ = ("_acls_by_type", "count")

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._acls_by_type: dict[ResourceType, _TypeAcls] = {}
        self.count = 0
        self._change(acls, ())

    def with_changes(self, added: Iterable[Acl], removed: Iterable[Acl]) -> Acls:
        """Return the ACLs after a change; unchanged tables are shared."""
        changed = Acls()
        changed._acls_by_type = dict(self._acls_by_type)
        changed.count = self.count
        changed._change(added, removed)
        return changed

    def _change(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        """Apply a change to this instance, which must not be shared yet."""
        writer = _Writer(self._acls_by_type)
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
        self._acls_by_type.update(writer.written())

    def for_resource(self, resource_type: ResourceType, name: str) -> list[Mapping[str, tuple[Acl, ...]]]:
        """Return the ACLs that apply to a resource, in groups that are keyed by principal.

        The order is: literal name, prefixes from the longest to the shortest, wildcard.
        """
        rules = self._acls_by_type.get(resource_type)
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
        """Yield the ACLs of these principals for all resources of the type."""
        rules = self._acls_by_type.get(resource_type, _NO_TYPE_ACLS)
        for table in (rules.literal, rules.prefixed):
            for group in table.values():
                for principal in principals:
                    yield from group.get(principal, ())

    def matching(self, acl_filter: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter selects, sorted."""
        return sorted(acl for acl in self if acl_filter.matches(acl))

    def __iter__(self) -> Iterator[Acl]:
        for rules in self._acls_by_type.values():
            for table in (rules.literal, rules.prefixed):
                for group in table.values():
                    for acls in group.values():
                        yield from acls

    def __len__(self) -> int:
        return self.count

    def __contains__(self, acl: object) -> bool:
        if not isinstance(acl, Acl):
            return False
        table = self._acls_by_type.get(acl.resource_type, _NO_TYPE_ACLS).table(acl.pattern_type)
        return acl in table.get(acl.resource_name, {}).get(acl.principal, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acls) and set(self) == set(other)

    def __hash__(self) -> int:
        return hash(frozenset(self))


NO_ACLS: Final = Acls()
