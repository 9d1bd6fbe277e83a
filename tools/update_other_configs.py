"""Refresh the broker configurations that the simulator knows by name only.

Usage: `python -m tools.update_other_configs`. Kafka's own classes (`tools/java/ConfigFacts.java`)
tell name, type, default, limits and mode of each; those that `broker_sim/config/` does not declare
become one line each of `broker_sim/config/other_configs.jsonl`. The names of all, in the order of Kafka's
definitions, become `config_order.txt` beside it. A test compares the result with the answer of a running
broker. Needs Java 17 and Maven.
"""

from __future__ import annotations

import json
from pathlib import Path

from broker_sim_integration.reference.jars import kafka_jars

from broker_sim.config import BROKER_CONFIGS
from tools.update_regex_tables import run_java

__all__ = ["ORDER", "TARGET", "config_facts", "lines_of", "names_of"]

TARGET = Path(__file__).resolve().parents[1] / "broker_sim" / "config" / "other_configs.jsonl"
ORDER = TARGET.with_name("config_order.txt")


def config_facts(jars: Path) -> list[list[str]]:
    """Return kind, name, type, default, limits, internal and mode of each configuration."""
    return [line.split("\t") for line in run_java("ConfigFacts", jars).splitlines()]


def lines_of(facts: list[list[str]]) -> list[str]:
    """Return the lines of the file."""
    return [
        json.dumps([name, type_name, None if default in {"null", "required"} else default, *rest])
        for kind, name, type_name, default, limits, internal, mode in sorted(facts)
        if kind == "broker" and name not in BROKER_CONFIGS
        for rest in [(limits, mode, internal == "true")]
    ]


def names_of(facts: list[list[str]]) -> list[str]:
    """Return the names of a broker's configurations in the order of Kafka's definitions."""
    return [name for kind, name, *_ in facts if kind == "broker"]


def main() -> None:
    """Write the files."""
    facts = config_facts(kafka_jars())
    for path, lines in ((TARGET, lines_of(facts)), (ORDER, names_of(facts))):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
