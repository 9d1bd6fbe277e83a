"""Refresh the message schemas and type stubs from a release of kafka-clients.

Usage: `python -m tools.update_schemas [VERSION]`. Maven fetches the jar; its message
definitions are stripped to facts (names, types, versions, tags, defaults), one message per
line of `broker_sim/protocol/schemas.jsonl`; then `messages.pyi` is written from them.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from broker_sim.protocol.schema import MessageSpec, parse_message
from tools.message_stubs import stub_source

DEFAULT_VERSION = "4.3.1"
PROTOCOL = Path(__file__).resolve().parent.parent / "broker_sim" / "protocol"
MESSAGE_FACTS = (
    "name",
    "type",
    "apiKey",
    "validVersions",
    "flexibleVersions",
    "latestVersionUnstable",
    "listeners",
    "fields",
    "commonStructs",
)
FIELD_FACTS = (
    "name",
    "type",
    "versions",
    "nullableVersions",
    "tag",
    "taggedVersions",
    "flexibleVersions",
    "default",
    "ignorable",
    "fields",
)


def fetch_definitions(version: str) -> list[dict[str, Any]]:
    """Return every message definition in the kafka-clients jar of `version`, by name."""
    with tempfile.TemporaryDirectory() as directory:
        artifact = f"org.apache.kafka:kafka-clients:{version}"
        subprocess.run(
            [
                *("mvn", "-q", "-B", "dependency:copy"),
                *(f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"),
            ],
            check=True,
            timeout=600,
        )
        jar = (Path(directory) / f"kafka-clients-{version}.jar").read_bytes()
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        texts = [
            archive.read(name).decode()
            for name in sorted(archive.namelist())
            if re.fullmatch(r"common/message/\w+\.json", name)
        ]
    return [json.loads(re.sub(r"(?m)^\s*//.*$", "", text)) for text in texts]


def strip_message(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one definition, in a fixed order of keys."""
    facts = {key: definition[key] for key in MESSAGE_FACTS if definition.get(key)}
    if "apiKey" in definition:
        facts["apiKey"] = definition["apiKey"]
    for key in ("fields", "commonStructs"):
        if key in facts:
            facts[key] = [strip_field(field) for field in facts[key]]
    return {key: facts[key] for key in MESSAGE_FACTS if key in facts}


def strip_field(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one field or common struct; absent facts stay absent."""
    facts = {key: definition[key] for key in FIELD_FACTS if key in definition}
    if not facts.get("ignorable"):
        facts.pop("ignorable", None)
    if "fields" in facts:
        facts["fields"] = [strip_field(field) for field in facts["fields"]]
    return facts


def main() -> None:
    """Write `schemas.jsonl` and `messages.pyi`."""
    version = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_VERSION
    definitions = [strip_message(definition) for definition in fetch_definitions(version)]
    lines = [json.dumps(definition, separators=(",", ":")) for definition in definitions]
    (PROTOCOL / "schemas.jsonl").write_text("\n".join(lines) + "\n")
    specs: list[MessageSpec] = [parse_message(definition) for definition in definitions]
    (PROTOCOL / "messages.pyi").write_text(stub_source(specs, version))
    subprocess.run(["ruff", "format", "-q", str(PROTOCOL / "messages.pyi")], check=True)
    print(f"{len(specs)} messages of kafka-clients {version}")


if __name__ == "__main__":
    main()
