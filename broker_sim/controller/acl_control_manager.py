"""The rules of access control; mirrors `AclControlManager`. Error messages are Kafka's, because clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller.requests import DeletedAcls, Outcome
from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import AclOperation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.metadata import MetadataDelta
    from broker_sim.metadata.acl import Acl, AclFilter

__all__ = ["create_acls", "delete_acls"]

_ABSTRACT_TYPES: Final = (ResourceType.UNKNOWN, ResourceType.ANY)
_ABSTRACT_OPERATIONS: Final = (AclOperation.UNKNOWN, AclOperation.ANY)


def create_acls(delta: MetadataDelta, acls: Sequence[Acl]) -> list[Outcome]:
    """Add those that are valid; returns one outcome each. One that is there already is no error."""
    outcomes = [_check(acl) for acl in acls]
    new = [
        acl
        for acl, outcome in zip(acls, outcomes, strict=True)
        if outcome.ok and acl not in delta.acls
    ]
    if new:
        delta.change_acls(new, ())
    return outcomes


def delete_acls(delta: MetadataDelta, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
    """Remove what the filters mean; each tells all that it means, also what another one removes too."""
    results = [_find(delta, wanted) for wanted in filters]
    removed = {acl for result in results for acl in result.acls}
    if removed:
        delta.change_acls((), removed)
    return results


def _find(delta: MetadataDelta, wanted: AclFilter) -> DeletedAcls:
    if ResourceType.UNKNOWN is wanted.resource_type or PatternType.UNKNOWN is wanted.pattern_type:
        return DeletedAcls(_invalid("Unknown patternFilter."))
    if AclOperation.UNKNOWN is wanted.operation or Permission.UNKNOWN is wanted.permission:
        return DeletedAcls(_invalid("Unknown entryFilter."))
    return DeletedAcls(Outcome(), tuple(delta.base.acls.matching(wanted)))


def _check(acl: Acl) -> Outcome:
    """Mirror `validateNewAcl`."""
    if acl.resource_type in _ABSTRACT_TYPES:
        return _invalid(f"Invalid resourceType {acl.resource_type.name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return _invalid(f"Invalid patternType {acl.pattern_type.name}")
    if acl.operation in _ABSTRACT_OPERATIONS:
        return _invalid(f"Invalid operation {acl.operation.name}")
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        return _invalid(f"Invalid permissionType {acl.permission.name}")
    if not acl.resource_name:
        return _invalid("Resource name should not be empty")
    return Outcome()


def _invalid(message: str) -> Outcome:
    return Outcome(ErrorCode.INVALID_REQUEST, message)
