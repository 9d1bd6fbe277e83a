"""The table on a real broker: one node of Kafka 4.4.0 as a local process; needs Java and Maven."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.dead_letters.shop import Shop
from broker_sim_integration.dead_letters.table import CONFIGS, TABLE, play
from broker_sim_integration.reference.clusters.jvm import JAVA_OPTIONS, find_java
from broker_sim_integration.reference.clusters.node_config import CLUSTER_ID, to_file
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.jars import KAFKA_VERSION, kafka_jars
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.root_filesystem import NODE_FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

START_S: Final = 120
END_S: Final = 30


def play_on_real(cases: Sequence[str] = tuple(TABLE)) -> dict[str, list[Any]]:
    """Return the observations of these cases."""
    client, controller = free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        **CONFIGS,
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, (Path(home) / "log").open("ab") as log:
        file = Path(home) / "node.properties"
        file.write_text(to_file({**properties, "log.dirs": f"{home}/data"}), encoding="utf-8")
        java = [find_java(), *JAVA_OPTIONS, f"-Dlog4j2.configurationFile={NODE_FILES / 'log4j2.xml'}"]
        java += ["-cp", f"{kafka_jars(version=KAFKA_VERSION, progress=to_stderr)}/*"]
        out: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file)]
        subprocess.run(tool, check=True, **out)  # noqa: S603 - our own Java command
        with subprocess.Popen([*java, "kafka.Kafka", str(file)], start_new_session=True, **out) as kafka:  # noqa: S603
            try:
                return asyncio.run(_play_all(("127.0.0.1", client), cases))
            finally:
                kafka.kill()
                kafka.wait(END_S)


async def _play_all(address: tuple[str, int], cases: Sequence[str]) -> dict[str, list[Any]]:
    async with asyncio.timeout(START_S):
        while True:
            try:
                (await Shop.connect(address)).close()
                break
            except OSError:
                await asyncio.sleep(0.2)
    outcomes = {}
    for case in cases:
        sys.stderr.write(f"{case}\n")
        outcomes[case] = await play(address, case)
    return outcomes
