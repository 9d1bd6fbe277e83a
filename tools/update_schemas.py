"""Refresh the message schemas and type stubs from a release of Kafka.

Usage: `python -m tools.update_schemas [VERSION]`. Maven fetches the jars of kafka-clients and of
the coordinators; their message definitions are stripped to facts (names, types, versions, tags, defaults),
one message per line of `broker_sim/protocol/schemas.jsonl` and of the coordinators'
`record_schemas.jsonl`; then the stubs `messages.pyi` and `record_messages.pyi`
are written from them.
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

DEFAULT_VERSION = "4.4.0"
BROKER_SIM = Path(__file__).resolve().parent.parent / "broker_sim"
CLIENTS = "kafka-clients"
COORDINATORS = {
    "group": "kafka-group-coordinator",
    "share/coordinator": "kafka-share-coordinator",
    "transaction": "kafka-transaction-coordinator",
}
"""The jars of the coordinators by the folders of their records."""
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

OF_OLDER_RELEASES = frozenset(
    {
        *("AlterReplicaLogDirs", "CreateAcls", "CreateDelegationToken", "CreateTopics", "DeleteAcls", "DeleteTopics"),
        *("DescribeAcls", "DescribeDelegationToken", "DescribeLogDirs", "ExpireDelegationToken"),
        *("OffsetForLeaderEpoch", "RenewDelegationToken"),
    }
)
"""APIs with all versions from 0 on: Kafka 4 has removed the old ones, but its definitions still have their fields."""


def fetch_definitions(jar_name: str, version: str) -> list[dict[str, Any]]:
    """Return all message definitions in that jar of `version`, by name."""
    with tempfile.TemporaryDirectory() as directory:
        artifact = f"org.apache.kafka:{jar_name}:{version}"
        subprocess.run(
            [*("mvn", "-q", "-B", "dependency:copy"), *(f"-Dartifact={artifact}", f"-DoutputDirectory={directory}")],
            check=True,
            timeout=600,
        )
        jar = (Path(directory) / f"{jar_name}-{version}.jar").read_bytes()
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
    if definition["name"].removesuffix("Request").removesuffix("Response") in OF_OLDER_RELEASES:
        facts["validVersions"] = f"0-{definition['validVersions'].rpartition('-')[2]}"
    if "apiKey" in definition:
        facts["apiKey"] = definition["apiKey"]
    for key in ("fields", "commonStructs"):
        if key in facts:
            facts[key] = [strip_field(field) for field in facts[key]]
    return {key: facts[key] for key in MESSAGE_FACTS if key in facts}


def strip_field(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one field or common struct."""
    facts = {key: definition[key] for key in FIELD_FACTS if key in definition}
    if not facts.get("ignorable"):
        facts.pop("ignorable", None)
    if "fields" in facts:
        facts["fields"] = [strip_field(field) for field in facts["fields"]]
    return facts


def write(directory: Path, schemas: str, stub: str, jar_name: str, version: str) -> None:
    """Write the schemas and the stub of one jar's messages."""
    definitions = [strip_message(definition) for definition in fetch_definitions(jar_name, version)]
    lines = [json.dumps(definition, separators=(",", ":")) for definition in definitions]
    (directory / schemas).write_text("\n".join(lines) + "\n")
    specs: list[MessageSpec] = [parse_message(definition) for definition in definitions]
    (directory / stub).write_text(stub_source(specs, f"{jar_name} {version}"))
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(directory / stub)], check=True)
    print(f"{len(specs)} messages of {jar_name} {version}")


def main() -> None:
    """Write the schemas and the stubs."""
    version = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_VERSION
    write(BROKER_SIM / "protocol", "schemas.jsonl", "messages.pyi", CLIENTS, version)
    for folder, jar_name in COORDINATORS.items():
        directory = BROKER_SIM / folder
        write(directory, "record_schemas.jsonl", "record_messages.pyi", jar_name, version)


if __name__ == "__main__":
    main()
