"""Verbs on brokers and the links between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import WAIT_LIMIT_S, BaseVerbs
from broker_sim.control.verb import verb, waiting_verb
from broker_sim.errors import ConfigError, WrongStateError
from broker_sim.runtime.arguments import checked_ms
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.node import Node
    from broker_sim.cluster.status.cluster_status import BrokerStatus
    from broker_sim.config import GivenValue


class BrokerVerbs(BaseVerbs):
    """The verbs on brokers."""

    @verb()
    def pause(self, broker_id: int) -> None:
        """Stop the broker's process where it is, as SIGSTOP does."""
        self.nodes.pause(broker_id)

    @verb()
    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue, as SIGCONT does."""
        self.nodes.resume(broker_id)

    @verb()
    def kill(self, broker_id: int) -> None:
        """Kill the broker's process, as SIGKILL does. Its log survives."""
        self.nodes.kill(broker_id)
        self.listeners.close(broker_id)

    @waiting_verb()
    async def stop(self, broker_id: int) -> None:
        """Shut the broker down as SIGTERM does (controlled shutdown): it hands over its leaderships first."""
        await self._stop(broker_id)

    @waiting_verb()
    async def start(
        self, broker_id: int, *, wait: bool = True, end_session: bool = False, new_ports: bool = False
    ) -> None:
        """Start a broker that was killed or stopped, on its port and with its log.

        Waits until clients can connect, which is when the controller has registered the broker again: after a kill only
        when its old session has ended (`broker.session.timeout.ms`). With `end_session=True` the old session ends at
        once, which has no counterpart in Kafka. With `new_ports=True` the broker comes back on other free ports;
        ConfigError if its ports are fixed. With a data directory it reads its current files; ConfigError for a
        directory of another broker. With `wait=False` the call returns at once.
        """
        self._start_dead(broker_id, end_session=end_session, new_ports=new_ports)
        if wait:
            await self._until(lambda: self.listeners.is_accepting(broker_id), f"broker {broker_id} to accept clients")

    @waiting_verb(path="/brokers")
    async def add_broker(
        self, broker_id: int | None = None, *, configs: Mapping[str, GivenValue] | None = None
    ) -> BrokerStatus:
        """Add a broker to the running cluster; returns its status when clients can connect.

        `broker_id` is by default one above the highest; `configs` are added to the configuration of all brokers. As
        in Kafka, existing partitions stay where they are until they are reassigned; new topics use the new broker.
        Raises ConfigError for an id in use or an invalid configuration, OSError for a port in use.
        """
        from broker_sim.cluster.status.cluster_status import broker_status  # noqa: PLC0415 - see `Verbs`

        if broker_id is None:
            broker_id = max(self.nodes.nodes) + 1
        self._add(broker_id, configs)
        try:
            self._start(broker_id)
        except BaseException:
            self._remove(broker_id)
            raise
        await self._until(lambda: self.listeners.is_accepting(broker_id), f"broker {broker_id} to accept clients")
        return broker_status(self.nodes, broker_id)

    @waiting_verb("DELETE", "/brokers/{broker_id}")
    async def remove_broker(self, broker_id: int) -> None:
        """Remove a broker for good: shut it down if it is running, and unregister it.

        As in Kafka, its replicas stay assigned to it, offline, and a partition without another in-sync replica has no
        leader; reassign partitions first. Records in memory are dropped; the files of a data directory stay. `reset`
        brings the broker back. Raises WrongStateError for the last broker.
        """
        node = self.nodes.node(broker_id)
        if len(self.nodes.nodes) == 1:
            raise WrongStateError(f"broker {broker_id} is the last broker; add another one first, or close the cluster")
        if node.state is ProcessState.RUNNING and node.on_stopped is None:
            await self._stop(broker_id)
        if node.state is not ProcessState.DEAD:
            self.kill(broker_id)
        self._remove(broker_id)
        version = self.nodes.controller.image.version
        await self._until_brokers_have(version, f"the brokers to forget broker {broker_id}")

    @waiting_verb()
    async def roll(self) -> None:
        """Restart all brokers one by one, each when the previous one is back in every ISR.

        Raises WrongStateError unless every broker is running.
        """
        for broker_id in self.nodes.nodes:
            self.nodes.running(broker_id)
        for broker_id in self.nodes.nodes:
            await self._stop(broker_id)
            self._start(broker_id)
            await self._until(
                lambda broker_id=broker_id: (  # type: ignore[misc]
                    self.listeners.is_accepting(broker_id) and self.nodes.is_in_sync
                ),
                f"broker {broker_id} to be back in every ISR",
            )

    @verb()
    def disconnect(self, broker_id: int) -> None:
        """Cut the broker off from the other nodes. Clients still reach it."""
        self.nodes.isolate(broker_id)

    @verb()
    def reconnect(self, broker_id: int) -> None:
        """Let the broker and the other nodes reach each other again, as before `disconnect`."""
        self.nodes.isolate(broker_id, drop=False)

    @verb()
    def disconnect_clients(self, broker_id: int, *, listener: str | None = None) -> None:
        """Cut the broker off from its clients, of one listener or of all. The other nodes still reach it.

        Connections stay and new ones are accepted, but bytes in both directions wait until `reconnect_clients`, and are
        lost if the broker dies first. TLS handshakes hang. Raises ConfigError
        for an unknown listener.
        """
        node = self.nodes.alive(broker_id)
        node.clients_cut_off = self.listeners.hold_clients(broker_id, listener)

    @verb()
    def reconnect_clients(self, broker_id: int, *, listener: str | None = None) -> None:
        """Let clients reach the broker again, by one listener or by all, as before `disconnect_clients`."""
        node = self.nodes.alive(broker_id)
        node.clients_cut_off = self.listeners.release_clients(broker_id, listener)

    @verb(path="/links", fields={"source": "from", "target": "to"})
    def set_link(self, source: int, target: int, *, drop: bool = False, delay_ms: int = 0) -> None:
        """Cut or slow the link from one broker to another; without options, mend it.

        A cut link holds messages until it is mended, as TCP does.
        """
        self.nodes.set_link(source, target, drop=drop, delay_ms=delay_ms)

    @verb()
    def delay_metadata(self, max_ms: int = 0) -> None:
        """Make each broker apply new metadata late, as Kafka's brokers do; 0 ends the delay.

        A broker receives new metadata up to `max_ms` after the controller has answered, and leads and follows new
        partitions up to `max_ms` after that; each draws its own delays. On that broker a new topic is unknown during
        the first delay (UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION), and has no leader during the second
        (NOT_LEADER_OR_FOLLOWER).
        """
        self.nodes.metadata_delay.max_ms = checked_ms("max_ms", max_ms)

    @waiting_verb()
    async def reset(self, *, new_ports: bool = False, lasting: str | None = None) -> None:
        """Restore the state in which the cluster was opened, without a restart.

        Removes faults, recorded requests, denials and added brokers, mends links, resumes paused brokers, starts dead
        ones (their old session ends at once) and adds removed ones. When all accept clients again, it deletes all
        topics, SCRAM users, ACLs, quotas, and changes of configurations and features, and creates the initial topics,
        in one step: no client can create one in between. Groups and transactional ids are deleted; Kafka's own topics
        stay, empty. Returns when every broker has the new metadata and coordinators have loaded.

        `new_ports` keeps former clients out: before topics are deleted, brokers move to other free ports, and
        connections to the former ports are aborted; only the bootstrap servers read afterwards have the new ports.
        The listener `lasting` keeps its port and its clients. Raises ConfigError if another listener has a fixed
        port.
        """
        nodes = self.nodes
        if new_ports:
            self.listeners.check_new_ports(lasting)
        elif lasting is not None:
            raise ConfigError("lasting names the listener that keeps its port; pass new_ports too")
        nodes.faults.clear()
        nodes.metadata_delay.max_ms = 0
        nodes.links.heal()
        for listeners in self.listeners.all:
            for sasl in listeners.sasl.values():
                sasl.users.reset()
        self._restore_brokers()
        await self._until_ready("the brokers to be back")
        for listeners in self.listeners.all:
            for ssl in listeners.ssl.values():
                ssl.reset()
        moved = {id_: await self.listeners.move(id_, lasting) for id_ in nodes.nodes} if new_ports else {}
        nodes.requests.forget()
        nodes.denials.forget()
        nodes.client_metrics.forget()
        nodes.reset(self._own_topics(), moved)
        version = self._make_users()
        await self._until_brokers_have(version, "the brokers to learn of the topics")
        await self._until_changed(
            lambda: _are_loaded(nodes.brokers.values()), lambda: "the coordinators to load", WAIT_LIMIT_S
        )

    def _restore_brokers(self) -> None:
        """Remove added brokers, revive the initial ones, and add the removed ones again."""
        first_ids, nodes = self._first_ids(), self.nodes.nodes
        for broker_id in [each for each in nodes if each not in first_ids]:
            if nodes[broker_id].state is not ProcessState.DEAD:
                self.kill(broker_id)
            self._remove(broker_id)
        for node in nodes.values():
            self._revive(node)
        for broker_id in [each for each in first_ids if each not in nodes]:
            self._add(broker_id)
            self._start(broker_id)

    def _revive(self, node: Node) -> None:
        """Bring the broker back to running and reachable by its clients; returns at once."""
        broker_id = node.broker_id
        if node.on_stopped is not None:
            self.kill(broker_id)
        if node.clients_cut_off:
            self.reconnect_clients(broker_id)
        if node.state is ProcessState.PAUSED:
            self.nodes.resume(broker_id)
        elif node.state is ProcessState.DEAD:
            self._start_dead(broker_id, end_session=True)


def _are_loaded(brokers: Iterable[Broker]) -> bool:
    """Whether each coordinator has loaded all partitions that its broker leads."""
    return not any(broker.is_loading for broker in brokers)
