"""Real KRaft nodes with one controller as local processes, for tables of cases; needs Java and Maven."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from broker_sim_integration.reference.clusters.jvm import JAVA_OPTIONS, find_java
from broker_sim_integration.reference.clusters.node_config import CLUSTER_ID, to_file
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.single_node import answers
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.jars import KAFKA_VERSION, kafka_jars
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.root_filesystem import NODE_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

START_TIMEOUT_MS: Final = 120_000
END_S: Final = 30


def compile_plugin(source: Path, classes: Path) -> None:
    """Compile a Java class against Kafka's jars into the directory `classes`; needs a JDK."""
    jars = f"{kafka_jars(version=KAFKA_VERSION, progress=to_stderr)}/*"
    subprocess.run(["javac", "-cp", jars, "-d", str(classes), str(source)], check=True)  # noqa: S603, S607


class LocalNodes:
    """Node 1, which is controller and broker, and any number of brokers beside it; a context manager.

    Nothing is left of them. `classes` is a directory of compiled classes beside Kafka's own.
    """

    def __init__(self, configs: Mapping[str, str], *, classes: Path | None = None) -> None:
        self._configs = configs
        self._controller, *_ = free_ports(1)
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._ports: dict[int, int] = {}
        jars = f"{kafka_jars(version=KAFKA_VERSION, progress=to_stderr)}/*"
        self._java = [find_java(), *JAVA_OPTIONS, f"-Dlog4j2.configurationFile={NODE_FILES / 'log4j2.xml'}"]
        self._java += ["-cp", jars if classes is None else f"{jars}:{classes}"]

    def start(self, node_id: int, *, new_port: bool = False) -> None:
        """Start a node, with its former data if there is any, and wait until it responds to clients."""
        if new_port or node_id not in self._ports:
            (self._ports[node_id],) = free_ports(1)
        directory = Path(self._home.name) / f"node-{node_id}"
        is_new = not directory.exists()
        directory.mkdir(exist_ok=True)
        file = directory / "node.properties"
        file.write_text(to_file({**self._properties(node_id), "log.dirs": f"{directory}/data"}), encoding="utf-8")
        with (directory / "log").open("ab") as log:
            out: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            tool = [*self._java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file)]
            if is_new:
                subprocess.run(tool, check=True, **out)  # noqa: S603 - our own Java command
            kafka = [*self._java, "kafka.Kafka", str(file)]
            self._processes[node_id] = subprocess.Popen(kafka, start_new_session=True, **out)  # noqa: S603
        wait_until(partial(answers, self._ports[node_id]), "Kafka answers", timeout_ms=START_TIMEOUT_MS)

    def stop(self, node_id: int) -> None:
        """End a node by SIGTERM, and wait for its end."""
        process = self._processes.pop(node_id)
        process.terminate()
        process.wait(END_S)

    def forget(self, node_id: int) -> None:
        """Remove the data of a node that has ended."""
        shutil.rmtree(Path(self._home.name) / f"node-{node_id}")

    def address(self, node_id: int) -> tuple[str, int]:
        """Return host and port of a node."""
        return "127.0.0.1", self._ports[node_id]

    def _properties(self, node_id: int) -> dict[str, str]:
        is_first = node_id == 1
        client = f"PLAINTEXT://127.0.0.1:{self._ports[node_id]}"
        return {
            "process.roles": "broker,controller" if is_first else "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{client},CONTROLLER://127.0.0.1:{self._controller}" if is_first else client,
            **self._configs,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(END_S)
        self._home.cleanup()


def play_on_local_node(
    play: Callable[[tuple[str, int], str], Coroutine[Any, Any, list[Any]]],
    cases: Iterable[str],
    configs: Mapping[str, str],
    *,
    classes: Path | None = None,
) -> dict[str, list[Any]]:
    """Run `play(address, case)` for each case on one node with these configurations; return the results by case."""
    outcomes = {}
    with LocalNodes(configs, classes=classes) as nodes:
        nodes.start(1)
        for case in cases:
            sys.stderr.write(f"{case}\n")
            outcomes[case] = asyncio.run(play(nodes.address(1), case))
    return outcomes
