"""The ACLs of the cluster; mirrors `AclControlManager`. Error messages are Kafka's, because clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller.requests import DeletedAcls, Outcome
from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import AclOperation, PatternType, Permission, ResourceType
from broker_sim.metadata.cidr import cidr_problem
from broker_sim.metadata.feature_names import METADATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.metadata import MetadataDelta
    from broker_sim.metadata.acl import Acl, AclFilter
    from broker_sim.protocol.release import Release

_WITH_RANGES: Final = 32
"""Level of metadata.version, 4.4-IV1, from which on hosts may have a prefix length."""
_ABSTRACT_TYPES: Final = (ResourceType.UNKNOWN, ResourceType.ANY)
_ABSTRACT_OPERATIONS: Final = (AclOperation.UNKNOWN, AclOperation.ANY)


def create_acls(delta: MetadataDelta, acls: Sequence[Acl], release: Release) -> list[Outcome]:
    """Add the valid ACLs; return one outcome each. An ACL that already exists is not an error.

    Kafka checks hosts from 4.4 on, where they may have a prefix length (KIP-1276).
    """
    knows_ranges = delta.features.get(METADATA_VERSION, 0) >= _WITH_RANGES
    outcomes = [
        (release.is_at_least("4.4") and outcome.ok and _host_problem(acl.host, knows_ranges)) or outcome
        for acl, outcome in zip(acls, map(_check, acls), strict=True)
    ]
    new = [acl for acl, outcome in zip(acls, outcomes, strict=True) if outcome.ok and acl not in delta.acls]
    if new:
        delta.change_acls(new, ())
    return outcomes


def delete_acls(delta: MetadataDelta, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
    """Remove the ACLs that the filters match; each result lists all matches of its filter."""
    results = [_find(delta, acl_filter) for acl_filter in filters]
    removed = {acl for result in results for acl in result.acls}
    if removed:
        delta.change_acls((), removed)
    return results


def _find(delta: MetadataDelta, acl_filter: AclFilter) -> DeletedAcls:
    if ResourceType.UNKNOWN is acl_filter.resource_type or PatternType.UNKNOWN is acl_filter.pattern_type:
        return DeletedAcls(_invalid("Unknown patternFilter."))
    if AclOperation.UNKNOWN is acl_filter.operation or Permission.UNKNOWN is acl_filter.permission:
        return DeletedAcls(_invalid("Unknown entryFilter."))
    return DeletedAcls(Outcome(), tuple(delta.base.acls.matching(acl_filter)))


def _check(acl: Acl) -> Outcome:
    problem = next(_problems(acl), None)
    return Outcome() if problem is None else _invalid(problem)


def _problems(acl: Acl) -> Iterator[str]:
    """Yield the errors of a new ACL, in the order of Kafka's `validateNewAcl`."""
    if acl.resource_type in _ABSTRACT_TYPES:
        yield f"Invalid resourceType {acl.resource_type.name}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        yield f"Invalid patternType {acl.pattern_type.name}"
    if acl.operation in _ABSTRACT_OPERATIONS:
        yield f"Invalid operation {acl.operation.name}"
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        yield f"Invalid permissionType {acl.permission.name}"
    if not acl.resource_name:
        yield "Resource name should not be empty"
    if ":" not in acl.principal:
        yield (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the"
            " principal type from the principal name)"
        )


def _host_problem(host: str, knows_ranges: bool) -> Outcome | None:
    if not host:
        return _invalid("Host pattern cannot be null or empty")
    if "/" not in host:
        return None
    if not knows_ranges:
        text = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        return Outcome(ErrorCode.UNSUPPORTED_VERSION, text)
    problem = cidr_problem(host)
    return None if problem is None else _invalid(f"Invalid CIDR notation '{host}': {problem}")


def _invalid(message: str) -> Outcome:
    return Outcome(ErrorCode.INVALID_REQUEST, message)
