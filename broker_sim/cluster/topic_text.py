"""The text form of a topic, on the command line and in Python: `NAME:PARTITIONS:RF:KEY=VALUE`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.controller import CreatableTopic
from broker_sim.protocol.special_values import BROKER_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TopicText(NamedTuple):
    """A topic as asked for; -1 stands for the brokers' default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


def parse_topic(text: object) -> TopicText:
    """Return the topic; all but the name may be left out. Raises ValueError with what is allowed."""
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
    """Return the topics that a cluster is opened with. Raises TypeError for one text, ValueError as above."""
    if isinstance(topics, str):
        raise TypeError(f"topics must be a list such as [{topics!r}], not a text")
    return [
        CreatableTopic(each.name, each.partitions, each.replication_factor, configs=each.configs)
        for each in map(parse_topic, topics)
    ]
