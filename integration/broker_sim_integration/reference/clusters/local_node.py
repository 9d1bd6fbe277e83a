"""One real KRaft node as a local process, for tables about a single broker; needs Java and Maven."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.reference.clusters.jvm import JAVA_OPTIONS, find_java
from broker_sim_integration.reference.clusters.node_config import CLUSTER_ID, to_file
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.single_node import answers
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.jars import KAFKA_VERSION, kafka_jars
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.root_filesystem import NODE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START_TIMEOUT_MS: Final = 120_000
END_S: Final = 30


def compile_plugin(source: Path, classes: Path) -> None:
    """Compile a Java class against Kafka's jars into the directory `classes`; needs a JDK."""
    jars = f"{kafka_jars(version=KAFKA_VERSION, progress=to_stderr)}/*"
    subprocess.run(["javac", "-cp", jars, "-d", str(classes), str(source)], check=True)  # noqa: S603, S607


@contextmanager
def local_node(configs: Mapping[str, str], *, classes: Path | None = None) -> Iterator[tuple[str, int]]:
    """Yield the host and port of a node with these configurations; it is removed afterwards.

    `classes` is a directory of compiled classes in addition to Kafka's own.
    """
    client, controller = free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        **configs,
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, (Path(home) / "log").open("ab") as log:
        file = Path(home) / "node.properties"
        file.write_text(to_file({**properties, "log.dirs": f"{home}/data"}), encoding="utf-8")
        java = [find_java(), *JAVA_OPTIONS, f"-Dlog4j2.configurationFile={NODE_FILES / 'log4j2.xml'}"]
        jars = f"{kafka_jars(version=KAFKA_VERSION, progress=to_stderr)}/*"
        java += ["-cp", jars if classes is None else f"{jars}:{classes}"]
        out: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file)]
        subprocess.run(tool, check=True, **out)  # noqa: S603 - our own Java command
        with subprocess.Popen([*java, "kafka.Kafka", str(file)], start_new_session=True, **out) as kafka:  # noqa: S603
            try:
                wait_until(partial(answers, client), "Kafka answers", timeout_ms=START_TIMEOUT_MS)
                yield "127.0.0.1", client
            finally:
                kafka.kill()
                kafka.wait(END_S)
