"""Refresh the broker configurations that the simulator knows by name only.

Usage: `python -m tools.update_other_configs`. Name, type, default, limits and mode come from Kafka's own classes
(`tools/java/ConfigFacts.java`). Each configuration that `broker_sim/config/` does not declare becomes a line of
`broker_sim/config/other_configs.jsonl`, with the release that added it if that is 4.1 or newer. All names, in the
order of Kafka's definitions, become `config_order.txt` beside it. A test compares the result with the answer of a
running broker. Needs Java 17 and Maven.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from broker_sim_integration.reference.jars import kafka_jars, release_of

from broker_sim.config import BROKER_CONFIGS
from tools.update_regex_tables import run_java

__all__ = ["NEWEST", "ORDER", "TARGET", "config_facts", "lines_of", "names_of", "since_of"]

OLDER: Final = ("4.0.2", "4.1.2", "4.2.1", "4.3.1")
NEWEST: Final = "4.4.0"
"""The release whose configurations are in the tables; `OLDER` releases lack some of them."""

TARGET = Path(__file__).resolve().parents[1] / "broker_sim" / "config" / "other_configs.jsonl"
ORDER = TARGET.with_name("config_order.txt")


def config_facts(jars: Path) -> list[list[str]]:
    """Return kind, name, type, default, limits, internal and mode of each configuration."""
    return [line.split("\t") for line in run_java("ConfigFacts", jars).splitlines()]


def since_of(facts: list[list[str]]) -> dict[tuple[str, str], str]:
    """Return by kind and name the release that added a configuration, for those that 4.0 lacks."""
    since = {(kind, name): release_of(NEWEST) for kind, name, *_ in facts}
    for version in reversed(OLDER):
        for kind, name, *_ in config_facts(kafka_jars(version=version)):
            if (kind, name) in since:
                since[kind, name] = release_of(version)
    return {key: release for key, release in since.items() if release != release_of(OLDER[0])}


def lines_of(facts: list[list[str]], since: dict[tuple[str, str], str]) -> list[str]:
    """Return the lines of the file."""
    return [
        json.dumps([name, type_name, None if default in {"null", "required"} else default, *rest])
        for kind, name, type_name, default, limits, internal, mode in sorted(facts)
        if kind == "broker" and name not in BROKER_CONFIGS
        for release in [since.get((kind, name))]
        for rest in [(limits, mode, internal == "true", *([] if release is None else [release]))]
    ]


def names_of(facts: list[list[str]]) -> list[str]:
    """Return the names of a broker's configurations in the order of Kafka's definitions."""
    return [name for kind, name, *_ in facts if kind == "broker"]


def main() -> None:
    """Write the files."""
    facts = config_facts(kafka_jars(version=NEWEST))
    for path, lines in ((TARGET, lines_of(facts, since_of(facts))), (ORDER, names_of(facts))):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
