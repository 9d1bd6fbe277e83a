"""One real KRaft node in a container, with any listeners, for tables about a single broker."""

from __future__ import annotations

import socket
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim_integration.reference.clusters.node_config import CLUSTER_ID
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.docker_daemon import connect_docker
from broker_sim_integration.reference.image import find_or_make_image
from broker_sim_integration.reference.jars import KAFKA_VERSION
from broker_sim_integration.reference.progress import silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START_TIMEOUT_MS = 120_000
ANSWER_S = 10
FIRST_PORT = 9_094
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/data",  # noqa: S108 - of the container
}


class Node:
    """A running node; `ports` are those of 127.0.0.1, by listener."""

    def __init__(self, container: Any, ports: Mapping[str, int]) -> None:
        self._container = container
        self.ports = ports

    @property
    def host_of_clients(self) -> str:
        """The address from which the broker sees clients of this machine."""
        self._container.reload()
        return str(self._container.attrs["NetworkSettings"]["Networks"]["bridge"]["Gateway"])


@contextmanager
def single_node(
    protocols: Mapping[str, str], plaintext: str, own: str, properties: Mapping[str, str]
) -> Iterator[Node]:
    """Yield a node with these listeners, and CONTROLLER; it is removed afterwards.

    `protocols` maps each listener, including CONTROLLER, to its security protocol. `plaintext` is the listener
    on which the start is awaited, `own` the listener that the node itself uses.
    """
    names = [name for name in protocols if name != "CONTROLLER"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    inside = {name: FIRST_PORT + index for index, name in enumerate(names)}
    all_properties = {
        **PROPERTIES,
        "listeners": ",".join(["CONTROLLER://127.0.0.1:9093", *(f"{n}://0.0.0.0:{inside[n]}" for n in names)]),
        # The node reaches itself through its own listener.
        "advertised.listeners": ",".join(f"{n}://127.0.0.1:{(inside if n == own else ports)[n]}" for n in names),
        "inter.broker.listener.name": own,
        "listener.security.protocol.map": ",".join(f"{n}:{protocols[n]}" for n in protocols),
        **properties,
    }
    with closing(connect_docker()) as docker:
        container = docker.containers.run(
            find_or_make_image(KAFKA_VERSION, progress=silent),
            detach=True,
            environment=_environment(all_properties),
            ports={f"{inside[n]}/tcp": ("127.0.0.1", ports[n]) for n in names},
        )
        try:
            is_there = partial(answers, ports[plaintext])
            wait_until(is_there, "Kafka answers", timeout_ms=START_TIMEOUT_MS)
            yield Node(container, ports)
        finally:
            container.remove(force=True, v=True)


def _environment(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the environment from which the image's entry point makes these properties."""
    return {
        "CLUSTER_ID": CLUSTER_ID,
        **{f"KAFKA_{name.replace('-', '___').replace('.', '_').upper()}": value for name, value in properties.items()},
    }


def answers(port: int) -> bool:
    """Whether the broker itself responds, not only Docker's end of its port."""
    header = RequestHeader(ApiKey.API_VERSIONS, 0, 0, None)
    frame = b"".join(encode_request(header, messages.ApiVersionsRequest()))
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S) as connection:
            connection.sendall(frame)
            return bool(connection.recv(1))
    except OSError:
        return False
