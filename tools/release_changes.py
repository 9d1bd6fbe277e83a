"""List what a release of Kafka changes: `python -m tools.release_changes [OLDER NEWER]`.

It writes docs/reference/kafka-releases.md from the jars of both versions: APIs and their versions, message fields,
errors, features, configurations, records of the internal topics and of the metadata log. Needs Java 17 and Maven.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.reference.jars import kafka_jars

from tools.update_other_configs import config_facts
from tools.update_regex_tables import run_java
from tools.update_releases import read_facts
from tools.update_schemas import strip_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDER: Final = "4.3.1"
NEWER: Final = "4.4.0"
TARGET: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "kafka-releases.md"
DEFINITION: Final = re.compile(r"(?:common/)?(?:message|metadata)/\w+\.json")
Facts = dict[str, dict[str, str]]
"""By section and name: the facts about an item of a release, as one text."""

INTRODUCTION: Final = """\
# From Kafka {older} to {newer}

Made by `python -m tools.release_changes {older} {newer}` from the jars of both; do not edit. `+` is new, `-` is gone,
`~` has changed. `broker-sim run --as-version` takes the release; [Supported APIs](apis.md) and
[Differences](differences.md) say what is served of it.
"""
RECORDS: Final = "Records of the internal topics and of the metadata log"
MESSAGES: Final = "Messages"


def facts_of(version: str) -> Facts:
    """Return all facts of a release, such as 4.4.0, by section."""
    jars = kafka_jars(version=version)
    table = read_facts(f"{jars}/*", version)
    return {
        "APIs": {name: f"versions {low} to {high}" for name, (low, high) in table["apis"].items()},
        "Features": {
            name: f"levels {low} to {high}, {default} in a new cluster"
            for name, (low, high, default) in table["features"].items()
        },
        "Errors": _errors(jars),
        **_messages(jars),
        **_configs(jars),
    }


def page(older: str, newer: str) -> str:
    """Return the whole page."""
    before, after = facts_of(older), facts_of(newer)
    parts = [INTRODUCTION.format(older=older, newer=newer)]
    for section in after:
        rows = list(changes(before.get(section, {}), after[section]))
        parts.append(f"\n## {section}\n\n" + ("".join(rows) or "Nothing has changed.\n"))
    return "".join(parts)


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each added, removed or changed item, by name."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None:
            yield f"- `+` `{name}`: {new}\n"
        elif new is None:
            yield f"- `-` `{name}`\n"
        elif old != new:
            yield f"- `~` `{name}`: {new}; before: {old}\n"


def _errors(jars: Path) -> dict[str, str]:
    lines = (line.split("\t") for line in run_java("ErrorFacts", jars).splitlines())
    return {f"{code} {name}": message for code, name, message in lines}


def _configs(jars: Path) -> Facts:
    sections: Facts = {}
    for kind, name, type_name, default, limits, internal, mode in config_facts(jars):
        facts = [type_name.lower(), "required" if default == "required" else f"default `{default}`"]
        facts += [limits] if limits.strip() not in {"", "null"} else []
        facts += ["internal"] if internal == "true" else []
        facts += [f"with the broker's `{mode}`" if kind == "topic" else mode] if mode not in {"", "null"} else []
        sections.setdefault(f"Configurations: {kind}", {})[name] = ", ".join(facts)
    return sections


def _messages(jars: Path) -> Facts:
    """Return the fields of messages and of records, by message and path."""
    sections: Facts = {MESSAGES: {}, RECORDS: {}}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(io.BytesIO(jar.read_bytes())) as archive:
            for name in filter(DEFINITION.fullmatch, sorted(archive.namelist())):
                text = re.sub(r"(?m)^\s*//.*$", "", archive.read(name).decode())
                message = strip_message(json.loads(text))
                is_record = message["type"] not in {"request", "response", "header", "data"}
                section = sections[RECORDS if is_record else MESSAGES]
                section[message["name"]] = f"versions {message['validVersions']}"
                section.update(fields_of(message["name"], message))
    return sections


def fields_of(path: str, owner: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield path and facts of each field of a message; a struct is followed by its fields."""
    for field in (*owner.get("fields", ()), *owner.get("commonStructs", ())):
        place = f"{path}.{field['name']}"
        facts = [field.get("type", "struct"), f"versions {field.get('versions', 'all')}"]
        facts += [f"null in {field['nullableVersions']}"] if "nullableVersions" in field else []
        facts += [f"tag {field['tag']}"] if "tag" in field else []
        facts += [f"default {field['default']}"] if "default" in field else []
        yield place, ", ".join(facts)
        yield from fields_of(place, field)


def main() -> None:
    """Write the page."""
    older, newer = sys.argv[1:3] if len(sys.argv) > 2 else (OLDER, NEWER)
    TARGET.write_text(page(older, newer), encoding="utf-8")
    print(f"wrote {TARGET.name}: {older} to {newer}")


if __name__ == "__main__":
    main()
