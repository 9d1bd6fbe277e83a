"""The text forms of what options take: `KEY=VALUE` and `NAME:PARTITIONS:RF:KEY=VALUE`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["TopicText", "parse_configs", "parse_topics"]

BROKER_DEFAULT = -1


class TopicText(NamedTuple):
    """A topic as asked for; -1 stands for the brokers' default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


def parse_topics(
    ctx: click.Context, param: click.Parameter, texts: Sequence[str]
) -> list[TopicText]:
    """Return the topics; all but the name may be left out. A callback of click's options."""
    topics = []
    for text in texts:
        try:
            topics.append(_parse_topic(text))
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is not NAME:PARTITIONS:RF:KEY=VALUE, for example "
                "orders:3:3:min.insync.replicas=2",
                ctx,
                param,
            ) from None
    return topics


def parse_configs(
    ctx: click.Context, param: click.Parameter, texts: Sequence[str]
) -> dict[str, str]:
    """Return the configurations by key. A callback of click's options."""
    configs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise click.BadParameter(
                f"{text!r} is not KEY=VALUE, for example log.retention.ms=60000", ctx, param
            )
        configs[key] = value
    return configs


def _parse_topic(text: str) -> TopicText:
    name, *rest = text.split(":")
    numbers = [BROKER_DEFAULT, BROKER_DEFAULT]
    for index in range(2):
        if not rest or "=" in rest[0]:
            break
        number = rest.pop(0)
        if number:
            numbers[index] = int(number)
    return TopicText(name, numbers[0], numbers[1], _parse_topic_configs(rest))


def _parse_topic_configs(texts: Sequence[str]) -> dict[str, str]:
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
