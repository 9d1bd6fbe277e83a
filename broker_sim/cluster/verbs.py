"""The verbs of a cluster: the only list of what can be done to it.

`AsyncCluster` carries them out; `Cluster` and `VirtualCluster` are made from this list, and so are
the control port and `broker-sim ctl`. A new verb is one method here and its tests: the method, its
parameters and its docstring are all that the other faces need. `broker-sim ctl` imports this module
for its help, so what is slow to import is imported where it is used.

Every method runs on the cluster's event loop. Errors: UnknownBrokerError and UnknownPartitionError
for what does not exist, WrongStateError for a verb that does not fit the state of the broker, ApiError
for what a Kafka controller would refuse, ClusterTimeoutError for a wait that takes too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from broker_sim.cluster.scopes import Scope
from broker_sim.control.verb import AsyncFace, Face, verb, waiting_verb
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.cluster.listeners import Listeners
    from broker_sim.cluster.nodes import Nodes
    from broker_sim.cluster.records import TopicRecord, TopicRecords
    from broker_sim.cluster.status import ClusterStatus, PurgatoriesStatus, TopicStatus
    from broker_sim.config import GivenValue
    from broker_sim.controller import CreatableTopic
    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.faults import Fault, InjectedFault, Loss
    from broker_sim.protocol.api_keys import ApiKey

__all__ = ["Verbs"]

BROKER_DEFAULT = -1
WAIT_LIMIT_S = 60
"""More than a killed broker needs to come back: its old session ends after 9 s unless configured."""


class Verbs(Face):
    """What can be done to a running cluster."""

    listeners: Listeners

    @property
    def nodes(self) -> Nodes:
        """The nodes of the cluster. Raises WrongStateError when it does not run."""
        raise NotImplementedError

    # -- brokers --------------------------------------------------------------------------------

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
        """Shut the broker down as SIGTERM does (controlled shutdown): it first hands over what it leads."""
        await self._stop(broker_id)

    @waiting_verb()
    async def start(self, broker_id: int, *, wait: bool = True, end_session: bool = False) -> None:
        """Start a broker that was killed or stopped, on its port and with its log.

        Waits until clients can connect, which is when the controller has registered the broker again:
        after a kill only when its old session has ended (`broker.session.timeout.ms`). With a data
        directory it reads its files as they are now; ConfigError if that is not its directory. With
        `end_session=True` that session is ended at once, which no Kafka does. With `wait=False`
        returns at once.
        """
        self.nodes.dead(broker_id)
        if end_session:
            self.nodes.controller.end_session(broker_id)
        self._start(broker_id)
        if wait:
            await self._until(
                lambda: self.listeners.is_accepting(broker_id),
                f"broker {broker_id} to accept clients",
            )

    @waiting_verb()
    async def roll(self) -> None:
        """Restart all brokers one after the other, each when the last one is back in every ISR.

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
        """Undo `disconnect`."""
        self.nodes.isolate(broker_id, drop=False)

    @verb()
    def disconnect_clients(self, broker_id: int) -> None:
        """Cut the broker off from its clients. The other nodes still reach it.

        Connections stay and new ones are made, but what either side sends waits until
        `reconnect_clients`, and is lost when the broker dies before.
        """
        self.nodes.alive(broker_id).clients_cut_off = True
        self.listeners.hold_clients(broker_id)

    @verb()
    def reconnect_clients(self, broker_id: int) -> None:
        """Undo `disconnect_clients`."""
        self.nodes.alive(broker_id).clients_cut_off = False
        self.listeners.release_clients(broker_id)

    @verb(path="/links", fields={"source": "from", "target": "to"})
    def set_link(self, source: int, target: int, *, drop: bool = False, delay_ms: int = 0) -> None:
        """Cut or slow the link from one broker to another. Without options it is healthy again.

        A cut link holds what is sent until it is healthy again, as TCP does.
        """
        self.nodes.set_link(source, target, drop=drop, delay_ms=delay_ms)

    @waiting_verb()
    async def wait_until_in_sync(self, timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until every partition has a leader and all of its replicas in the ISR.

        Raises ClusterTimeoutError after `timeout_s` seconds.
        """
        await self._until(lambda: self.nodes.is_in_sync, "all replicas to be in sync", timeout_s)

    @waiting_verb()
    async def reset(self) -> None:
        """Bring the cluster back to how it was opened, without a restart.

        Removes faults, mends links, resumes paused brokers and starts dead ones (their old session
        ends at once). When all accept clients again, it deletes all topics, SCRAM users and
        configurations that were set since, and makes the topics that the cluster was opened with, in
        one step: no client can create one in between. Returns when every broker knows them.
        """
        nodes = self.nodes
        nodes.faults.clear()
        nodes.links.heal()
        for broker_id, node in nodes.nodes.items():
            if node.on_stopped is not None:
                self.kill(broker_id)
            if node.clients_cut_off:
                self.reconnect_clients(broker_id)
            if node.state is ProcessState.PAUSED:
                nodes.resume(broker_id)
            elif node.state is ProcessState.DEAD:
                nodes.controller.end_session(broker_id)
                self._start(broker_id)
        await self._until_ready("the brokers to be back")
        version = nodes.reset(self._own_topics())
        await self._until_heard_of(version, "the brokers to hear of the topics")

    # -- requests of clients ----------------------------------------------------------------------

    @verb(path="/inject")
    def inject(self, fault: Fault) -> InjectedFault:
        """Let a fault hit requests of clients from now on; returns a handle to it."""
        from broker_sim.handlers.faults import Fault as FaultClass  # noqa: PLC0415 - see module docstring

        if not isinstance(fault, FaultClass):
            raise TypeError(
                f"inject takes a Fault, such as Fault(api='Produce', delay_ms=100), not {fault!r}"
            )
        if fault.broker is not None:
            self.nodes.node(fault.broker)
        return self.nodes.faults.inject(fault)

    @verb("DELETE", "/inject/{fault_id}")
    def heal(self, fault_id: int | None = None) -> None:
        """Remove one injected fault, or all of them. LookupError if there is none of that id."""
        self.nodes.faults.heal(fault_id)

    # -- topics ---------------------------------------------------------------------------------

    @waiting_verb(path="/topics")
    async def create_topic(
        self,
        name: str,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, GivenValue] | None = None,
        *,
        assignments: Mapping[int, list[int]] | None = None,
    ) -> TopicStatus:
        """Create a topic; returns when every running broker that can be reached knows it.

        -1 takes the brokers' default (`num.partitions`, `default.replication.factor`).
        `assignments` gives the brokers of each partition instead, the preferred leader first.
        """
        from broker_sim.cluster.status import topic_status  # noqa: PLC0415 - see module docstring
        from broker_sim.config import to_texts  # noqa: PLC0415 - see module docstring
        from broker_sim.controller import CreatableTopic  # noqa: PLC0415 - see module docstring

        wanted = CreatableTopic(
            name,
            partitions,
            replication_factor,
            tuple((assignments or {}).items()),
            to_texts(configs or {}),
        )
        version = self.nodes.make_topics([wanted])
        await self._until_heard_of(version, f"the brokers to hear of topic {name}")
        return topic_status(self.nodes, name)

    @waiting_verb("DELETE", "/topics/{name}")
    async def delete_topic(self, name: str) -> None:
        """Delete a topic; returns when every running broker that can be reached has forgotten it."""
        version = self.nodes.delete_topic(name)
        await self._until_heard_of(version, f"the brokers to forget topic {name}")

    @waiting_verb()
    async def transfer_leadership(self, topic: str, partition: int, to: int) -> None:
        """Make another in-sync replica the leader; returns when it leads.

        The leader epoch rises by one, as with every election. Does nothing if it leads already.
        """
        version = self.nodes.transfer_leadership(topic, partition, to)
        await self._until_heard_of(version, f"broker {to} to lead {topic}-{partition}")

    # -- records ----------------------------------------------------------------------------------

    @waiting_verb(path="/topics/{topic}/records")
    async def produce(
        self,
        topic: str,
        value: str | bytes | None,
        *,
        key: str | bytes | None = None,
        partition: int | None = None,
    ) -> TopicRecord:
        """Append one record as a producer with acks=all does; returns it with its offset.

        Without `partition` the key chooses it as Kafka's default partitioner does; without a key it
        is partition 0. Injected faults do not hit it. Raises ApiError with what a producer would be
        told, ClusterTimeoutError where the leader does not answer.
        """
        from broker_sim.cluster.records import append_record  # noqa: PLC0415 - see module docstring

        return await append_record(self.nodes, topic, value, key=key, partition=partition)

    @verb("GET", "/topics/{topic}/records")
    def records(self, topic: str) -> TopicRecords:
        """Return what consumers with read_committed can read of a topic now, partition by partition.

        Looks into the leaders' logs without a request, so injected faults and paused brokers do not
        matter. Raises UnknownPartitionError, WrongStateError for a partition without a live leader.
        """
        from broker_sim.cluster.records import readable_records  # noqa: PLC0415 - see module docstring

        return readable_records(self.nodes, topic)

    # -- status -----------------------------------------------------------------------------------

    @verb("GET", "/status")
    def status(self) -> ClusterStatus:
        """Return brokers with their state, and partitions with leader, ISR, LEO and HW."""
        from broker_sim.cluster.status import cluster_status  # noqa: PLC0415 - see module docstring

        return cluster_status(self.nodes)

    @verb("GET", "/purgatory")
    def purgatory(self) -> PurgatoriesStatus:
        """Return what is parked in each purgatory: keys, age, time left, wheel level and bucket."""
        from broker_sim.cluster.status import purgatories_status  # noqa: PLC0415 - see module docstring

        return purgatories_status(self.nodes)

    @verb("GET", "/metrics")
    def metrics(self) -> str:
        """Return Kafka's metrics in the text format of Prometheus; needs the extra `metrics`.

        Raises MissingExtraError without it.
        """
        from broker_sim.cluster.metrics import metrics_text  # noqa: PLC0415 - see module docstring

        return metrics_text(self.nodes)

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the id of the partition's leader, None without one."""
        return self.status().leader(topic, partition)

    def followers(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the ids of the replicas that do not lead, dead ones too."""
        return self.status().followers(topic, partition)

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the ids of the in-sync replicas."""
        return self.status().isr(topic, partition)

    def high_watermark(self, topic: str, partition: int = 0) -> int | None:
        """Return the leader's high watermark, None without a live leader."""
        return self.status().high_watermark(topic, partition)

    # -- for a `with` block -----------------------------------------------------------------------

    def paused(self, broker_id: int) -> Scope[None]:
        """Pause a broker for a `with` block; at its end it is resumed, unless it is not paused."""

        def leave(_: None) -> None:
            if self.status().broker(broker_id).state == ProcessState.PAUSED.value:
                self.resume(broker_id)

        return Scope(lambda: self.pause(broker_id), leave)

    def killed(self, broker_id: int, *, end_session: bool = False) -> Scope[None]:
        """Kill a broker for a `with` block; at its end it is started, unless it lives again.

        `end_session` as for `start`. On an AsyncCluster this takes `async with`.
        """

        def leave(_: None) -> object:
            if self.status().broker(broker_id).state != ProcessState.DEAD.value:
                return None
            return type(self).start(self, broker_id, end_session=end_session)

        return Scope(lambda: self.kill(broker_id), leave, awaits=isinstance(self, AsyncFace))

    def fault(
        self,
        *,
        api: str | ApiKey,
        broker: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        error: str | ErrorCode | None = None,
        lose: Literal["request", "response"] | Loss | None = None,
        delay_ms: int = 0,
        count: int | None = None,
    ) -> Scope[InjectedFault]:
        """Inject a fault for a `with` block, which gets its handle; the fields are those of `Fault`."""
        from broker_sim.handlers.faults import Fault as FaultClass  # noqa: PLC0415 - see module docstring

        fault = FaultClass(
            api=api, broker=broker, topic=topic, partition=partition,
            error=error, lose=lose, delay_ms=delay_ms, count=count,
        )  # fmt: skip
        return Scope(lambda: self.inject(fault), lambda injected: injected.remove())

    # -- shared by the verbs ----------------------------------------------------------------------

    def _start(self, broker_id: int) -> None:
        """Bind the port, then start the broker.

        If the port is in use now, or its log directory cannot be used, the broker stays dead.
        """
        self.listeners.bind(broker_id)
        try:
            broker = self.nodes.start(broker_id)
        except BaseException:
            self.listeners.close(broker_id)
            raise
        self.listeners.serve(broker)

    async def _stop(self, broker_id: int) -> None:
        """Shut a broker down in a controlled way; returns when its process has ended."""
        raise NotImplementedError

    async def _until(
        self, condition: Callable[[], bool], what: str, limit_s: float = WAIT_LIMIT_S
    ) -> None:
        """Wait for a condition on the metadata of the brokers. Raises ClusterTimeoutError."""
        raise NotImplementedError

    async def _until_heard_of(self, version: int, what: str) -> None:
        """Wait until every broker has that version of the metadata, if the controller can reach it."""
        await self._until(lambda: self.nodes.has_heard_of(version), what)

    async def _until_ready(self, what: str) -> None:
        """Wait until every broker accepts clients and is unfenced for all. Raises ClusterTimeoutError."""
        raise NotImplementedError

    def _own_topics(self) -> Sequence[CreatableTopic]:
        """Return the topics that the cluster is opened with."""
        raise NotImplementedError
