"""Three real Kafka nodes in containers on one network, started by testcontainers.

Clients reach each broker on a port of 127.0.0.1, which it keeps when it is killed and started again. A
pause freezes the container, a stop is SIGTERM, a kill SIGKILL. A broker is disconnected inside the
containers: blackhole routes on both sides drop all packets between the brokers, and clients still reach
them.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import Mount
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.reference.clusters.cluster import last_log_line, logged_kafka_version
from broker_sim_integration.reference.clusters.container_files import ContainerFiles
from broker_sim_integration.reference.clusters.node_config import NODE_IDS, Node, node_environment
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.started_cluster import StartedCluster
from broker_sim_integration.reference.docker_daemon import connect_docker
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.image import find_or_make_image
from broker_sim_integration.reference.jars import KAFKA_VERSION
from broker_sim_integration.reference.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker.models.containers import Container

INTERNAL_PORT = 19092
CONTROLLER_PORT = 19093
EXTERNAL_PORT = 9092
END_TIMEOUT_S = 30
DATA_DIRECTORY = "/var/lib/kafka/data"
"""A volume: the official image has one there, which its user may write to."""
OWNER_LABEL = "broker-sim.owner"

JVM_ENVIRONMENT = {
    "KAFKA_HEAP_OPTS": "-Xms256m -Xmx1g",
    "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # A node may get another address when it starts again, and may be looked up before it has one:
    # by default Java caches an old address for 30 s, and a failed look-up for 10 s.
    "KAFKA_OPTS": "-Dsun.net.inetaddr.ttl=0 -Dsun.net.inetaddr.negative.ttl=0",
}


class ContainerCluster(StartedCluster):
    """Three containers; see `ReferenceCluster` for the verbs."""

    kind: ClassVar[str] = "containers"
    faults: ClassVar[frozenset[Fault]] = frozenset(Fault)

    def __init__(
        self,
        configs: Mapping[str, str] | None = None,
        *,
        node_configs: Mapping[int, Mapping[str, str]] | None = None,
        version: str = KAFKA_VERSION,
        progress: Progress = silent,
    ) -> None:
        super().__init__(configs, node_configs=node_configs, version=version, progress=progress)
        self._containers: dict[int, DockerContainer] = {}
        self._expected_to_run: set[int] = set()
        self._cuts: dict[int, list[tuple[int, str]]] = {}
        self._cleanup = ExitStack()
        self.files = ContainerFiles(self._container, DATA_DIRECTORY)
        """The files of the brokers."""

    def open(self) -> None:
        """Find or build the image, start three containers, wait until clients see all brokers."""
        self._image = find_or_make_image(self._version, progress=self._progress)
        _remove_leftovers()
        try:
            self._progress(f"starting three containers of {self._image}")
            self._start_containers()
            self.wait_for_brokers(set(self.broker_ids))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the containers, in whatever state they are, and their network."""
        self._expected_to_run.clear()
        self._cuts.clear()
        self._containers.clear()
        self._cleanup.close()

    def pause(self, broker: int) -> None:
        """Freeze the container."""
        self._container(broker).pause()

    def resume(self, broker: int) -> None:
        """Unfreeze the container."""
        self._container(broker).unpause()

    def stop(self, broker: int) -> None:
        """Send SIGTERM and wait for the end; the container keeps its data."""
        self._end(broker, "SIGTERM")

    def kill(self, broker: int) -> None:
        """Send SIGKILL and wait for the end; the container keeps its data."""
        container = self._container(broker)
        container.reload()
        if container.status == "paused":
            container.unpause()  # Docker does not kill a frozen container
        self._end(broker, "SIGKILL")

    def _end(self, broker: int, signal_name: str) -> None:
        if broker not in self._expected_to_run:
            raise ReferenceClusterError(f"broker {broker} does not run")
        self._expected_to_run.discard(broker)
        container = self._container(broker)
        container.kill(signal_name)
        container.wait(timeout=END_TIMEOUT_S)

    def start(self, broker: int, *, wait: bool = True) -> None:
        """Start the container again, with its data and its port."""
        if broker in self._expected_to_run:
            raise ReferenceClusterError(f"broker {broker} runs already")
        self._container(broker).start()
        self._expected_to_run.add(broker)
        if wait:
            self.wait_until_serving(broker)

    def comes_up(self, broker: int) -> bool:
        """Start a broker; return whether it serves clients. Otherwise its process has ended."""
        self.start(broker, wait=False)
        try:
            self.wait_until_serving(broker)
        except ReferenceClusterError:
            container = self._container(broker)
            container.reload()
            if container.status != "exited":
                raise
            self._expected_to_run.discard(broker)
            return False
        return True

    def disconnect(self, broker: int) -> None:
        """Add blackhole routes between the broker and each other running one."""
        for peer in sorted(self._expected_to_run - {broker}):
            for one, other in ((broker, peer), (peer, broker)):
                address = self._inner_address(other)
                self._route(one, "add", address)
                self._cuts.setdefault(broker, []).append((one, address))

    def reconnect(self, broker: int) -> None:
        """Remove the blackhole routes; a killed container has already lost its own."""
        for one, address in self._cuts.pop(broker, []):
            with suppress(ReferenceClusterError):
                self._route(one, "del", address)

    def disconnect_clients(self, broker: int) -> None:
        """Add rules that drop all packets from and to the machine of the clients.

        Docker forwards the clients' packets from the network's gateway. Rules are evaluated in order, so the
        rule for local addresses is moved behind these.
        """
        gateway = self._gateway(broker)
        self._run(
            broker,
            "ip rule add pref 2 lookup local",
            f"ip rule add pref 1 from {gateway} blackhole",
            f"ip rule add pref 1 to {gateway} blackhole",
            "ip rule del pref 0",
        )

    def reconnect_clients(self, broker: int) -> None:
        """Remove the rules of `disconnect_clients`."""
        self._run(
            broker, "ip rule add pref 0 lookup local", *(f"ip rule del pref {preference}" for preference in (1, 1, 2))
        )

    def broker_log(self, broker: int) -> str:
        """Return the container's stdout and stderr, over all its starts."""
        return bytes(self._container(broker).logs()).decode(errors="replace")

    def describe(self) -> dict[str, Any]:
        """Return the facts of the machine and the versions of Kafka, image and Docker."""
        with closing(connect_docker()) as client:
            return {
                **super().describe(),
                "kafka_version": logged_kafka_version(self.broker_log(self.broker_ids[0])),
                "image": self._image,
                "docker": client.version()["Version"],
            }

    def _start_containers(self) -> None:
        _do_without_ryuk_if_missing()
        label = {OWNER_LABEL: _owner()}
        network = Network(docker_network_kw={"labels": label}).create()
        self._cleanup.callback(network.remove)
        ports = free_ports(len(NODE_IDS))
        self._nodes = [
            Node(
                node_id=node_id,
                host=f"kafka-{node_id}",
                bind_host="0.0.0.0",  # noqa: S104 - in the container
                internal_port=INTERNAL_PORT,
                controller_port=CONTROLLER_PORT,
                external_port=EXTERNAL_PORT,
                client_port=port,
            )
            for node_id, port in zip(NODE_IDS, ports, strict=True)
        ]
        for node in self._nodes:
            properties = self._properties(node, DATA_DIRECTORY)
            container = DockerContainer(
                self._image,
                env=node_environment(properties) | JVM_ENVIRONMENT,
                network=network,
                network_aliases=[node.host],
                hostname=node.host,
                cap_add=["NET_ADMIN"],  # for the routes of `disconnect`
                mounts=[Mount(DATA_DIRECTORY, None)],  # an anonymous volume is removed with the container
                labels=label,
            )
            # The method with_bind_ports of testcontainers would open the port to the whole network.
            bindings = cast("dict[str, Any]", container.ports)
            bindings[f"{EXTERNAL_PORT}/tcp"] = ("127.0.0.1", node.client_port)
            self._cleanup.callback(container.stop)
            container.start()
            self._containers[node.node_id] = container
            self._expected_to_run.add(node.node_id)

    def _check_nodes(self) -> None:
        for broker in self._expected_to_run:
            container = self._container(broker)
            container.reload()
            if container.status == "exited":
                raise ReferenceClusterError(f"broker {broker} ended: {last_log_line(self.broker_log(broker))}")

    def _container(self, broker: int) -> Container:
        if broker not in self._containers:
            raise ReferenceClusterError(f"the {self.kind} reference has no broker {broker} now")
        return self._containers[broker].get_wrapped_container()

    def _inner_address(self, broker: int) -> str:
        return str(self._network_of(broker)["IPAddress"])

    def _gateway(self, broker: int) -> str:
        return str(self._network_of(broker)["Gateway"])

    def _network_of(self, broker: int) -> dict[str, Any]:
        container = self._container(broker)
        container.reload()
        networks = container.attrs["NetworkSettings"]["Networks"]
        return cast("dict[str, Any]", next(iter(networks.values())))

    def _route(self, broker: int, verb: str, address: str) -> None:
        self._run(broker, f"ip route {verb} blackhole {address}/32")

    def _run(self, broker: int, *commands: str) -> None:
        """Run commands in the container one after the other, up to the first failure."""
        command = " && ".join(commands)
        try:
            done = self._container(broker).exec_run(["sh", "-c", command], user="0")
        except APIError as error:
            raise ReferenceClusterError(f"broker {broker} does not run: {error}") from error
        if done.exit_code != 0:
            raise ReferenceClusterError(f"{command}: {done.output.decode().strip()}")


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _remove_leftovers() -> None:
    """Remove containers and networks of earlier runs on this machine that were killed before their end."""
    machine = socket.gethostname()
    with closing(connect_docker()) as client:
        resources = client.containers.list(all=True, filters={"label": OWNER_LABEL})
        resources += client.networks.list(filters={"label": OWNER_LABEL})
        for resource in resources:
            labels = resource.attrs.get("Labels") or resource.attrs["Config"]["Labels"]
            host, _, pid = labels[OWNER_LABEL].rpartition(":")
            if host == machine and not Path(f"/proc/{pid}").exists():
                with suppress(NotFound):
                    resource.remove(**({"force": True, "v": True} if "Config" in resource.attrs else {}))


def _do_without_ryuk_if_missing() -> None:
    """Keep testcontainers from pulling its helper image Ryuk; this module cleans up by itself."""
    with closing(connect_docker()) as client:
        try:
            client.images.get(testcontainers_config.ryuk_image)
        except (ImageNotFound, DockerException):
            testcontainers_config.ryuk_disabled = True
