"""Write the page of all configurations: `python -m tools.config_page` writes docs/reference/configurations.md.

Everything comes from the definitions in `broker_sim/config/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    CHANGE_WITHOUT_EFFECT,
    PER_LISTENER,
    REPLICATION_QUOTA_CONFIGS,
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_WITHOUT_EFFECT,
    other_configs,
    to_text,
    why_without_effect,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim.config import ConfigDef

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "configurations.md"

INTRODUCTION = """\
# Configurations

Made by `python -m tools.config_page` from the definitions in `broker_sim/config/`; do not edit.

Names, types, defaults and limits are those of Kafka 4.4. A configuration of all brokers is given as
`broker-sim run --config KEY=VALUE` or `Cluster(configs={"key": value})`, one of a topic when the topic
is created. Clients can read and change both with the requests of an admin client. An unknown name or a
value that is not allowed is an error of one line.

Not every configuration has an effect. One without is accepted, so that a configuration made for Kafka
can be used as it is; when it is set, the event `configuration_without_effect` is logged once, with the
reason. An internal one is not told to clients.
"""

BROKER_HEAD = """
## Brokers

`cluster-wide` may be changed while the cluster runs, `read-only` may not.

| name | meaning | type | default | change |
|---|---|---|---|---|
"""

OTHER_HEAD = """
## Brokers, without effect

Kafka's other broker configurations, known by their facts. `per-broker` may be changed for one broker,
not for all at once. Their documentation is in Kafka's.

| name | type | default | change | reason |
|---|---|---|---|---|
"""

TOPIC_HEAD = """
## Topics

All may be changed while the cluster runs. The default is the value of the broker configuration.

| name | meaning | type | default | broker configuration |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    brokers = (BROKER_HEAD, *_broker_rows(), OTHER_HEAD, *_other_rows())
    return "".join((INTRODUCTION, *brokers, TOPIC_HEAD, *_topic_rows()))


def _broker_rows() -> Iterator[str]:
    for definition in _by_name({**BROKER_CONFIGS, **REPLICATION_QUOTA_CONFIGS}):
        change = definition.update_mode.value
        if definition.name in REPLICATION_QUOTA_CONFIGS:
            change += ", not at the start"
        if definition.name in PER_LISTENER:
            change += ", for one listener"
        elif definition.name in CHANGE_WITHOUT_EFFECT:
            change += ", without effect"
        yield _row(definition, change, BROKER_WITHOUT_EFFECT)


def _other_rows() -> Iterator[str]:
    for definition in _by_name(other_configs()):
        cells = (
            f"`{definition.name}`",
            _type(definition),
            _default(definition),
            definition.update_mode.value,
            why_without_effect(definition.name),
        )
        yield f"| {' | '.join(cells)} |\n"


def _topic_rows() -> Iterator[str]:
    for definition in _by_name(TOPIC_CONFIGS):
        synonym = TOPIC_CONFIG_SYNONYMS.get(definition.name)
        place = "" if synonym is None else f"`{synonym}`"
        yield _row(definition, place, TOPIC_WITHOUT_EFFECT)


def _by_name(definitions: Mapping[str, ConfigDef]) -> list[ConfigDef]:
    return sorted(definitions.values(), key=lambda definition: definition.name)


def _row(definition: ConfigDef, place: str, without_effect: Mapping[str, str]) -> str:
    meaning = f"{definition.doc} Internal." if definition.internal else definition.doc
    if definition.since:
        meaning += f" From Kafka {definition.since} on."
    if reason := without_effect.get(definition.name):
        meaning += f" Without effect: {reason}."
    return f"| `{definition.name}` | {meaning} | {_type(definition)} | {_default(definition)} | {place} |\n"


def _type(definition: ConfigDef) -> str:
    """Return the type and, if its values are restricted, the allowed ones."""
    name = definition.type.name.lower()
    return name if definition.validator is None else f"{name} {definition.validator}".strip()


def _default(definition: ConfigDef) -> str:
    text = to_text(definition.default)
    return f"`{text}`" if text else "none" if text is None else "empty"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
