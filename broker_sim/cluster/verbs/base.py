"""The base of all verbs: access to the nodes, and waiting for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.control.verb import Face

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from broker_sim.cluster.listeners.listeners import Listeners
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.config import GivenValue
    from broker_sim.controller import CreatableTopic
    from broker_sim.metadata import MetadataImage
    from broker_sim.security import TokenIssuer


WAIT_LIMIT_S = 60
"""Default timeout of verbs that wait, in seconds; a killed broker needs 9 s by default to come back."""
LIMIT_PER_THOUSAND_PARTITIONS_S = 10
"""Additional seconds per thousand partitions: a busy file system needs ms to create each replica's files."""


def wait_limit_s(image: MetadataImage) -> int:
    """Return the timeout in seconds for brokers that may have to create or open all partitions."""
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    return WAIT_LIMIT_S + partitions // 1_000 * LIMIT_PER_THOUSAND_PARTITIONS_S


class BaseVerbs(Face):
    """The cluster that verbs act on. Thread rule: the cluster's event loop."""

    listeners: Listeners
    token_issuer: TokenIssuer

    @property
    def nodes(self) -> Nodes:
        """The nodes of the cluster. Raises WrongStateError if it is not running."""
        raise NotImplementedError

    def _start_dead(self, broker_id: int, *, end_session: bool, new_ports: bool = False) -> None:
        """Start a broker that was killed or stopped; returns at once."""
        self.nodes.dead(broker_id)
        if end_session:
            self.nodes.controller.end_session(broker_id)
        self._start(broker_id, new_ports=new_ports)

    def _start(self, broker_id: int, *, new_ports: bool = False) -> None:
        """Bind the ports, then start the broker.

        If a port is in use or the log directory cannot be used, the broker stays dead.
        """
        self.listeners.bind(broker_id, new_ports=new_ports)
        self.nodes.node(broker_id).endpoints = self.listeners.advertised(broker_id)
        try:
            broker = self.nodes.start(broker_id)
        except BaseException:
            self.listeners.close(broker_id)
            raise
        self.listeners.serve(broker)

    def _add(self, broker_id: int, configs: Mapping[str, GivenValue] | None = None) -> None:
        """Add a broker, which is dead until `_start`. Raises ConfigError, and OSError for its directory."""
        raise NotImplementedError

    def _remove(self, broker_id: int) -> None:
        """Remove a dead broker, its registration and its records."""
        self.nodes.remove(broker_id)
        self.listeners.remove(broker_id)

    def _first_ids(self) -> Collection[int]:
        """Return the ids of the brokers that the cluster is opened with."""
        raise NotImplementedError

    async def _stop(self, broker_id: int) -> None:
        """Shut a broker down in a controlled way; returns when its process has ended."""
        raise NotImplementedError

    async def _until(self, condition: Callable[[], bool], what: str, limit_s: float | None = None) -> None:
        """Wait for a condition on the metadata of the brokers, for `limit_s` seconds (default: `wait_limit_s`).

        Raises ClusterTimeoutError.
        """
        raise NotImplementedError

    async def _until_changed(
        self, condition: Callable[[], object], describe: Callable[[], str], limit_s: float
    ) -> None:
        """Wait for any condition on the cluster. Raises ClusterTimeoutError with its description."""
        raise NotImplementedError

    async def _until_brokers_have(self, version: int, what: str) -> None:
        """Wait until every running broker that the controller can reach has that version of the metadata."""
        await self._until(lambda: self.nodes.brokers_have(version), what)

    async def _until_ready(self, what: str) -> None:
        """Wait until every broker accepts clients and all see it unfenced. Raises ClusterTimeoutError."""
        raise NotImplementedError

    def _own_topics(self) -> Sequence[CreatableTopic]:
        """Return the topics that the cluster is opened with."""
        raise NotImplementedError

    def _make_users(self) -> int:
        """Set the credentials that the cluster is opened with; return the version of the metadata."""
        raise NotImplementedError
