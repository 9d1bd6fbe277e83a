"""A rule of access control as a user writes it: `"User:billing"`, `"READ"`, `"topic:orders"`."""

from __future__ import annotations

from typing import Final

from broker_sim.metadata.acl import CLUSTER_NAME, WILDCARD, Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.runtime.arguments import check_can_be_sent

_CONCRETE: Final = 2
"""The first code of a resource type or an operation that a rule can have."""


def parse_acl(principal: str, operation: str, resource: str, host: str, *, deny: bool) -> Acl:
    """Return the rule. Raises ValueError, which says what is allowed."""
    check_can_be_sent(principal, resource, host)
    type_name, colon, name = resource.partition(":")
    names = [each.name for each in ResourceType if each >= _CONCRETE]
    if type_name.upper() not in names or not (name or type_name.upper() == "CLUSTER"):
        forms = ", ".join(each.lower() for each in names)
        raise ValueError(
            f"'resource' must be such as topic:orders, topic:ord*, topic:* or cluster, with one of"
            f" {forms}, not {resource!r}"
        )
    resource_type = ResourceType[type_name.upper()]
    if resource_type is ResourceType.CLUSTER and not colon:
        name = CLUSTER_NAME
    pattern_type = PatternType.LITERAL
    if name.endswith(WILDCARD) and name != WILDCARD:
        name, pattern_type = name.removesuffix(WILDCARD), PatternType.PREFIXED
    return Acl(
        resource_type,
        name,
        pattern_type,
        principal if ":" in principal else f"User:{principal}",
        host,
        _operation(operation),
        Permission.DENY if deny else Permission.ALLOW,
    )


def _operation(text: str) -> AclOperation:
    name = text.upper()
    names = [each.name for each in AclOperation if each >= _CONCRETE]
    if name not in names:
        raise ValueError(f"'operation' must be one of {', '.join(names)}, not {text!r}")
    return AclOperation[name]
