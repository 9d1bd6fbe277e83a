"""The configuration of the three nodes, the same for containers and local processes.

Each node is broker and controller at once (KRaft's combined mode) and has three listeners: INTERNAL between
brokers, CONTROLLER for the quorum, EXTERNAL for clients on 127.0.0.1. Everything else is Kafka's default,
because defaults are compared, too; only configurations without a default, or with one that does not work
for three nodes on one machine, are set here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NODE_IDS = (1, 2, 3)
CLUSTER_ID = "YnJva2VyLXNpbS1jbXBhcg"
"""A cluster id as Kafka requires it: 16 bytes in URL-safe base 64 without padding."""


COMMON_CONFIGS: Final = {"replica.fetch.backoff.ms": "100"}
"""Configurations of each compared cluster, including the simulated one.

A follower that learns of a new partition before its leader does gets an error and waits this long. Which of
them is first is random; with the default of a second, this would decide how long acks=all takes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The addresses of one node's listeners, for itself, for other nodes and for clients."""

    node_id: int
    host: str
    """Name or address of the node for the other nodes."""
    bind_host: str
    """The address that its listeners bind."""
    internal_port: int
    controller_port: int
    external_port: int
    """The port that its EXTERNAL listener binds."""
    client_port: int
    """The port of 127.0.0.1 on which clients reach that listener."""


def node_properties(
    node: Node, nodes: Sequence[Node], log_directory: str, configs: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of one node; `configs` are added and take precedence."""
    voters = ",".join(f"{peer.node_id}@{peer.host}:{peer.controller_port}" for peer in nodes)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": voters,
        "listeners": (
            f"INTERNAL://{node.bind_host}:{node.internal_port},"
            f"CONTROLLER://{node.bind_host}:{node.controller_port},"
            f"EXTERNAL://{node.bind_host}:{node.external_port}"
        ),
        "advertised.listeners": (
            f"INTERNAL://{node.host}:{node.internal_port},EXTERNAL://127.0.0.1:{node.client_port}"
        ),
        "listener.security.protocol.map": ("INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT"),
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": log_directory,
        **COMMON_CONFIGS,
        **configs,
    }


def node_environment(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties as the environment of the official image, `CLUSTER_ID` included.

    The image turns `KAFKA_FOO_BAR` into `foo.bar`: `_` is a dot, `__` an underscore, `___` a dash.
    """
    environment = {"CLUSTER_ID": CLUSTER_ID}
    for key, value in properties.items():
        name = key.replace("_", "__").replace("-", "___").replace(".", "_").upper()
        environment[f"KAFKA_{name}"] = value
    return environment


def to_file(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in properties.items())
    return "".join(f"{line}\n" for line in lines)
