"""Three real Kafka nodes as local processes on loopback, for machines with Java but no Docker.

A pause is SIGSTOP, a stop SIGTERM, a kill SIGKILL. Packets between processes of one machine cannot be
dropped without root, so this reference disconnects neither a broker nor its clients.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from broker_sim_integration.broker_files import DirectoryFiles
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.reference.clusters.cluster import last_log_line, logged_kafka_version
from broker_sim_integration.reference.clusters.leftovers import make_run_directory, remove_leftovers
from broker_sim_integration.reference.clusters.node_config import CLUSTER_ID, NODE_IDS, Node, to_file
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.started_cluster import StartedCluster
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.errors import ReferenceClusterError, ReferenceUnavailableError
from broker_sim_integration.reference.jars import KAFKA_VERSION, kafka_jars
from broker_sim_integration.reference.progress import Progress, silent
from broker_sim_integration.reference.root_filesystem import NODE_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST_JAVA = 17
PORTS_PER_NODE = 3
FORMAT_TIMEOUT_S = 60
END_TIMEOUT_S = 30
JAVA_OPTIONS = ("-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Small initial heaps and no C2 compiler: three brokers start on two cores in half the time."""

DATA = "data"
"""Name of a node's log directory, inside the node's own directory."""

JAVA_REMEDY = "apt-get install -y --no-install-recommends openjdk-17-jre-headless"


def find_java() -> str:
    """Return the path of a Java that Kafka can run on.

    Raise `ReferenceUnavailableError` if there is none, or only one that is too old.
    """
    java = shutil.which("java")
    if java is None:
        raise ReferenceUnavailableError(f"Java is missing: {JAVA_REMEDY}")
    done = subprocess.run(  # noqa: S603 - the Java on the PATH of the user
        [java, "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    version = re.search(r'version "(\d+)', done.stderr)
    if version is None or int(version.group(1)) < OLDEST_JAVA:
        raise ReferenceUnavailableError(f"{java} is older than Java {OLDEST_JAVA}, which Kafka needs: {JAVA_REMEDY}")
    return java


class JvmCluster(StartedCluster):
    """Three local processes; see `ReferenceCluster` for the verbs."""

    kind: ClassVar[str] = "jvm"
    faults: ClassVar[frozenset[Fault]] = frozenset({Fault.PAUSE, Fault.STOP, Fault.KILL})

    def __init__(
        self,
        configs: Mapping[str, str] | None = None,
        *,
        node_configs: Mapping[int, Mapping[str, str]] | None = None,
        version: str = KAFKA_VERSION,
        progress: Progress = silent,
    ) -> None:
        super().__init__(configs, node_configs=node_configs, version=version, progress=progress)
        self._directory: Path | None = None
        self._java_command: list[str] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.files = DirectoryFiles(lambda broker: self._node_directory(broker) / DATA)
        """The files of the brokers."""

    def open(self) -> None:
        """Fetch the jars, format the storage, start three processes, wait until clients see all brokers."""
        jars = kafka_jars(version=self._version, progress=self._progress)
        try:
            self._prepare(find_java(), jars)
            self._format_storage()
            self._progress(f"starting three nodes of Kafka {self._version} as local processes")
            for node in self._nodes:
                self._spawn(node.node_id)
            self.wait_for_brokers(set(self.broker_ids))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill the processes, including paused ones, and remove their directory."""
        for broker in list(self._processes):
            self.kill(broker)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def pause(self, broker: int) -> None:
        """Send SIGSTOP; returns when all threads have stopped."""
        process = self._process(broker)
        process.send_signal(signal.SIGSTOP)
        wait_until(
            lambda: _is_stopped(process.pid),
            f"broker {broker} is stopped",
            timeout_ms=END_TIMEOUT_S * 1000,
            interval_ms=1,
        )

    def resume(self, broker: int) -> None:
        """Send SIGCONT."""
        self._process(broker).send_signal(signal.SIGCONT)

    def stop(self, broker: int) -> None:
        """Send SIGTERM and wait for the end."""
        process = self._process(broker)
        process.terminate()
        process.wait(END_TIMEOUT_S)
        del self._processes[broker]

    def kill(self, broker: int) -> None:
        """Send SIGKILL and wait for the end."""
        process = self._process(broker)
        process.kill()
        process.wait(END_TIMEOUT_S)
        del self._processes[broker]

    def start(self, broker: int, *, wait: bool = True) -> None:
        """Start the process again on its directory."""
        if broker in self._processes:
            raise ReferenceClusterError(f"broker {broker} runs already")
        self._spawn(broker)
        if wait:
            self.wait_until_serving(broker)

    def comes_up(self, broker: int) -> bool:
        """Start a broker; return whether it serves clients. Otherwise its process has ended."""
        self.start(broker, wait=False)
        try:
            self.wait_until_serving(broker)
        except ReferenceClusterError:
            if self._processes[broker].poll() is None:
                raise
            del self._processes[broker]
            return False
        return True

    def broker_log(self, broker: int) -> str:
        """Return the broker's stdout and stderr, over all its starts."""
        return (self._node_directory(broker) / "broker.log").read_text(errors="replace")

    def describe(self) -> dict[str, Any]:
        """Return the facts of the machine and the versions of Kafka and Java."""
        java = subprocess.run(  # noqa: S603 - the Java that runs the brokers
            [self._java_command[0], "-version"], capture_output=True, text=True, check=False
        )
        return {
            **super().describe(),
            "kafka_version": logged_kafka_version(self.broker_log(self.broker_ids[0])),
            "java": java.stderr.splitlines()[0],
        }

    def _prepare(self, java: str, jars: Path) -> None:
        remove_leftovers()
        directory = make_run_directory()
        self._directory = directory
        log_configuration = NODE_FILES / "log4j2.xml"
        self._java_command = [java, *JAVA_OPTIONS]
        self._java_command += [f"-Dlog4j2.configurationFile={log_configuration}"]
        self._java_command += ["-cp", f"{jars}/*"]
        ports = iter(free_ports(PORTS_PER_NODE * len(NODE_IDS)))
        self._nodes = []
        for node_id in NODE_IDS:
            internal, controller, external = next(ports), next(ports), next(ports)
            self._nodes.append(
                Node(
                    node_id=node_id,
                    host="127.0.0.1",
                    bind_host="127.0.0.1",
                    internal_port=internal,
                    controller_port=controller,
                    external_port=external,
                    client_port=external,
                )
            )
        for node in self._nodes:
            home = self._node_directory(node.node_id)
            home.mkdir()
            properties = self._properties(node, str(home / DATA))
            (home / "node.properties").write_text(to_file(properties), encoding="utf-8")

    def _format_storage(self) -> None:
        tool = [*self._java_command, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]
        formatting = []
        for node in self._nodes:
            home = self._node_directory(node.node_id)
            with (home / "broker.log").open("ab") as log:
                formatting.append(
                    subprocess.Popen(  # noqa: S603 - our own Java command
                        [*tool, str(home / "node.properties")],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
                self._processes[node.node_id] = formatting[-1]
        for node, process in zip(self._nodes, formatting, strict=True):
            if process.wait(FORMAT_TIMEOUT_S) != 0:
                raise ReferenceClusterError(self._ended(node.node_id))
            del self._processes[node.node_id]

    def _spawn(self, broker: int) -> None:
        home = self._node_directory(broker)
        with (home / "broker.log").open("ab") as log:
            # In a session of its own, so that ctrl-C reaches only the comparison, which then ends the nodes.
            self._processes[broker] = subprocess.Popen(  # noqa: S603 - our own Java command
                [*self._java_command, "kafka.Kafka", str(home / "node.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _check_nodes(self) -> None:
        for broker, process in self._processes.items():
            if process.poll() is not None:
                raise ReferenceClusterError(self._ended(broker))

    def _ended(self, broker: int) -> str:
        return f"broker {broker} ended: {last_log_line(self.broker_log(broker))}"

    def _process(self, broker: int) -> subprocess.Popen[bytes]:
        if broker not in self._processes:
            raise ReferenceClusterError(f"broker {broker} does not run")
        return self._processes[broker]

    def _node_directory(self, broker: int) -> Path:
        if self._directory is None:
            raise ReferenceClusterError(f"the {self.kind} reference is not started")
        return self._directory / f"node-{broker}"


def _is_stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped; True without /proc."""
    states = (task / "stat" for task in Path(f"/proc/{pid}/task").glob("*"))
    try:
        # The state follows the name in brackets, which may contain any character.
        return all(state.read_text().rpartition(")")[2].split()[0] in "TtZ" for state in states)
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has just ended; look again
