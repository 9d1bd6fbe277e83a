"""Text forms of topics and access rules, on the command line and in Python.

orders:3:3:min.insync.replicas=2           a topic: NAME:PARTITIONS:RF:KEY=VALUE
User:billing READ topic:orders             an ACL: principal, operation, resource
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.controller import CreatableTopic
from broker_sim.metadata.acl import CLUSTER_NAME, WILDCARD, Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol.special_values import BROKER_DEFAULT
from broker_sim.runtime.arguments import check_can_be_sent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TopicText(NamedTuple):
    """A topic to be created; -1 stands for the brokers' default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


def parse_topic(text: object) -> TopicText:
    """Return the topic; all but the name may be left out. Raises ValueError with the allowed form."""
    try:
        if isinstance(text, str):
            return _parse(text)
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not NAME:PARTITIONS:RF:KEY=VALUE, for example orders:3:3:min.insync.replicas=2")


def _parse(text: str) -> TopicText:
    name, *rest = text.split(":")
    if not name:
        raise ValueError(text)
    numbers = [BROKER_DEFAULT, BROKER_DEFAULT]
    for index in range(2):
        if not rest or "=" in rest[0]:
            break
        number = rest.pop(0)
        if number:
            numbers[index] = int(number)
    return TopicText(name, numbers[0], numbers[1], _parse_configs(rest))


def _parse_configs(texts: Sequence[str]) -> dict[str, str]:
    """Return the configurations; a text without `=` belongs to the value before it."""
    configs: dict[str, str] = {}
    key = ""
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name:
            key = name
            configs[key] = value
        elif key:
            configs[key] += f":{text}"
        else:
            raise ValueError(text)
    return configs


def creatable_topics(topics: Sequence[str]) -> list[CreatableTopic]:
    """Return the initial topics of a cluster. Raises TypeError for a single text, ValueError as `parse_topic`."""
    if isinstance(topics, str):
        raise TypeError(f"topics must be a list such as [{topics!r}], not a text")
    return [
        CreatableTopic(each.name, each.partitions, each.replication_factor, configs=each.configs)
        for each in map(parse_topic, topics)
    ]


_CONCRETE: Final = 2
"""The lowest code of a concrete resource type or operation; lower ones are UNKNOWN and ANY."""


def parse_acl(principal: str, operation: str, resource: str, host: str, *, deny: bool) -> Acl:
    """Return the ACL. Raises ValueError with the allowed forms."""
    check_can_be_sent(principal, resource, host)
    type_name, colon, name = resource.partition(":")
    names = [each.name for each in ResourceType if each >= _CONCRETE]
    if type_name.upper() not in names or not (name or type_name.upper() == "CLUSTER"):
        forms = ", ".join(each.lower() for each in names)
        raise ValueError(
            f"'resource' must have a form such as topic:orders, topic:ord*, topic:* or cluster, with one of"
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
