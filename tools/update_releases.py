"""Refresh the table of Kafka's releases with the API versions that their brokers advertise.

Usage: `python -m tools.update_releases [all]`. Maven fetches the jars of each release that is not in the table yet, or
of all; a program (`tools/java/ReleaseFacts.java`) reads the facts from its classes, and they become one line of
`broker_sim/protocol/releases.jsonl`. Needs Java 17 and Maven.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from broker_sim_integration.reference.jars import release_of

from broker_sim.protocol.api_keys import ApiKey

PATCH_RELEASES = (
    *("2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"),
    *("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2"),
    *("4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"),
)
"""From 2.1 on, the oldest release that Kafka 4's clients support (KIP-896)."""

FIRST_WITH_KRAFT = (3, 3)
"""The first release that was production-ready without ZooKeeper."""
FIRST_WITH_UNSTABLE = 4
"""The first major release whose unstable versions and levels stand in the table."""

SLF4J = "org.slf4j:slf4j-api:1.7.36"
TOOLS = Path(__file__).resolve().parent
TARGET = TOOLS.parent / "broker_sim" / "protocol" / "releases.jsonl"
TIMEOUT_S = 600


def read_facts(class_path: str, patch_release: str) -> dict[str, Any]:
    """Return the facts of the release whose jars are on the class path, as in the table."""
    major, minor, _ = map(int, patch_release.split("."))
    listener = "BROKER" if (major, minor) >= FIRST_WITH_KRAFT else "ZK_BROKER"
    stability = "unstable" if major >= FIRST_WITH_UNSTABLE else "stable"
    done = subprocess.run(
        ["java", "-cp", class_path, str(TOOLS / "java" / "ReleaseFacts.java"), listener, stability],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
    )
    ranges: dict[str, dict[str, list[int]]] = {"apis": {}, "features": {}, "unstable_apis": {}, "unstable_features": {}}
    for line in done.stdout.splitlines():
        kind, key, *rest = line.split("\t")
        table = ranges[f"{kind.replace('-', '_')}s"]
        if kind.endswith("api"):
            kafkas_name, lowest, highest = rest
            table[api_name(int(key), kafkas_name)] = [int(lowest), int(highest)]
        elif int(rest[1]) > 0:
            table[key] = [int(number) for number in rest]
    facts: dict[str, Any] = {"release": release_of(patch_release), "read_from": patch_release}
    return facts | {name: table for name, table in ranges.items() if table or name in {"apis", "features"}}


def api_name(key: int, kafkas_name: str) -> str:
    """Return the name in `ApiKey`, which stays when Kafka renames an API, and Kafka's name for one that is new."""
    return ApiKey(key).name if key in ApiKey.__members__.values() else kafkas_name


def fetch_jars(patch_release: str, directory: Path) -> str:
    """Fetch the jars for `read_facts`; return their class path."""
    artifacts = [SLF4J, f"org.apache.kafka:kafka-clients:{patch_release}"]
    if tuple(map(int, patch_release.split(".")[:2])) >= FIRST_WITH_KRAFT:
        artifacts.append(f"org.apache.kafka:kafka-server-common:{patch_release}")
    for artifact in artifacts:
        subprocess.run(
            [*("mvn", "-q", "-B", "dependency:copy"), *(f"-Dartifact={artifact}", f"-DoutputDirectory={directory}")],
            check=True,
            timeout=TIMEOUT_S,
        )
    return f"{directory}/*"


def main(*, reads_all: bool) -> None:
    """Write `releases.jsonl`, the oldest release first."""
    former = [] if reads_all else [json.loads(line) for line in TARGET.read_text(encoding="utf-8").splitlines()]
    table = {facts["read_from"]: facts for facts in former}
    for patch_release in PATCH_RELEASES:
        if patch_release not in table:
            with tempfile.TemporaryDirectory() as directory:
                table[patch_release] = read_facts(fetch_jars(patch_release, Path(directory)), patch_release)
            print(f"{patch_release}: {len(table[patch_release]['apis'])} APIs")
    lines = [json.dumps(table[patch_release], separators=(",", ":")) for patch_release in PATCH_RELEASES]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(reads_all=sys.argv[1:] == ["all"])
