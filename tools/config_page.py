"""Write the page of all configurations: `python -m tools.config_page` writes docs/configurations.md.

Everything comes from the definitions in `broker_sim/config/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_WITHOUT_EFFECT,
    to_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker_sim.config import ConfigDef

TARGET = Path(__file__).parents[1] / "docs" / "configurations.md"

INTRODUCTION = """\
# Configurations

Made by `python -m tools.config_page` from the definitions in `broker_sim/config/`; do not edit.

Names, types, defaults and limits are those of Kafka 4.3. A configuration of all brokers is given as
`broker-sim run --config KEY=VALUE` or `Cluster(configs={"key": value})`, one of a topic when the topic
is created. Clients can read and change both with the requests of an admin client. An unknown name or a
value that is not allowed is an error of one line.

Not every configuration has an effect. One without is accepted, so that a configuration made for Kafka
can be used as it is; when it is set, the event `configuration_without_effect` is logged once.
"""

BROKER_HEAD = """
## Brokers

`cluster-wide` may be changed while the cluster runs, `read-only` may not.

| name | meaning | type | default | allowed | change | effect |
|---|---|---|---|---|---|---|
"""

TOPIC_HEAD = """
## Topics

All may be changed while the cluster runs. The default is the value of the broker configuration.

| name | meaning | type | default | allowed | broker configuration | effect |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    return "".join((INTRODUCTION, BROKER_HEAD, *_broker_rows(), TOPIC_HEAD, *_topic_rows()))


def _broker_rows() -> Iterator[str]:
    for definition in _public(BROKER_CONFIGS.values()):
        yield _row(definition, definition.update_mode.value, BROKER_WITHOUT_EFFECT)


def _topic_rows() -> Iterator[str]:
    for definition in _public(TOPIC_CONFIGS.values()):
        yield _row(definition, f"`{TOPIC_CONFIG_SYNONYMS[definition.name]}`", TOPIC_WITHOUT_EFFECT)


def _public(definitions: Iterable[ConfigDef]) -> list[ConfigDef]:
    """Return the definitions that Kafka's own documentation shows too, by name."""
    shown = (definition for definition in definitions if not definition.internal)
    return sorted(shown, key=lambda definition: definition.name)


def _row(definition: ConfigDef, place: str, without_effect: Mapping[str, str]) -> str:
    why = without_effect.get(definition.name)
    cells = (
        f"`{definition.name}`",
        definition.doc,
        definition.type.name.lower(),
        _default(definition),
        "" if definition.validator is None else definition.allowed,
        place,
        "yes" if why is None else f"no: {why}",
    )
    return f"| {' | '.join(cells)} |\n"


def _default(definition: ConfigDef) -> str:
    text = to_text(definition.default)
    return "none" if text is None else f"`{text}`"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
