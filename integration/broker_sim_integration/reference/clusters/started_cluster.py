"""The common part of references that start their own nodes: configurations, nodes and their ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker_sim_integration.broker_verbs import Reading
from broker_sim_integration.reference.clusters.cluster import ReferenceCluster
from broker_sim_integration.reference.clusters.node_config import Node, node_properties
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.jars import KAFKA_VERSION
from broker_sim_integration.reference.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping


class StartedCluster(ReferenceCluster):
    """Three nodes of `version`, which run while this object is open.

    `configs` are added to every broker's configuration, `node_configs` to one broker's, by broker id.
    """

    readings: ClassVar[frozenset[Reading]] = frozenset(Reading)

    def __init__(
        self,
        configs: Mapping[str, str] | None = None,
        *,
        node_configs: Mapping[int, Mapping[str, str]] | None = None,
        version: str = KAFKA_VERSION,
        progress: Progress = silent,
    ) -> None:
        self._configs = dict(configs or {})
        self._node_configs = dict(node_configs or {})
        self._version = version
        self._progress = progress
        self._nodes: list[Node] = []

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses on 127.0.0.1."""
        return ",".join(self.address(node.node_id) for node in self._nodes)

    def address(self, broker: int) -> str:
        """Return the broker's port of 127.0.0.1, which it keeps when it is killed and started."""
        ports = {node.node_id: node.client_port for node in self._nodes}
        if broker not in ports:
            raise ReferenceClusterError(f"the {self.kind} reference has no broker {broker} now")
        return f"127.0.0.1:{ports[broker]}"

    def _properties(self, node: Node, log_directory: str) -> dict[str, str]:
        configs = self._configs | dict(self._node_configs.get(node.node_id, {}))
        return node_properties(node, self._nodes, log_directory, configs)
