"""Frozen snapshots of a cluster and of its purgatories, as the verbs `status` and `purgatory` return them.

`to_json` returns the same as plain dicts and lists; the control port sends these.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import UnknownBrokerError, UnknownPartitionError, WrongStateError
from broker_sim.metadata import NO_LEADER
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.process import ProcessState
from broker_sim.runtime.sockets import address_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim_purgatory import ParkedOperation

    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.cluster.status.clients_status import ClientsMetrics
    from broker_sim.cluster.status.coordinator_status import GroupsStatus, GroupStatus
    from broker_sim.cluster.status.transaction_status import ProducersStatus, TransactionsStatus


@dataclass(frozen=True, slots=True)
class PurgatoryStatus:
    """One purgatory of one live broker, with its parked operations."""

    broker: int
    name: str
    """`Produce`, `Fetch`, `DeleteRecords`, `ElectLeader`, `ShareFetch`, `Rebalance`, `Heartbeat`, `ThrottledChannel`"""
    watched: int
    num_delayed: int
    completed: int
    expired: int
    purged: int
    """Completed entries that purges removed from the watch lists."""
    parked: tuple[ParkedOperation, ...]
    waits_for: tuple[str, ...]
    """The reason why each of `parked` waits, in words."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        parked = [
            {**one._asdict(), "keys": [str(key) for key in one.keys], "waits_for": waits_for}
            for one, waits_for in zip(self.parked, self.waits_for, strict=True)
        ]
        return {
            "name": self.name,
            "watched": self.watched,
            "num_delayed": self.num_delayed,
            "completed": self.completed,
            "expired": self.expired,
            "purged": self.purged,
            "parked": parked,
        }


class PurgatoriesStatus(tuple[PurgatoryStatus, ...]):
    """All purgatories of all live brokers, broker by broker."""

    __slots__ = ()

    def of(self, broker_id: int, name: str) -> PurgatoryStatus:
        """Return one purgatory, such as `of(1, "Produce")`. Raises LookupError if it does not exist."""
        for purgatory in self:
            if (purgatory.broker, purgatory.name) == (broker_id, name):
                return purgatory
        names = ", ".join(f"{one.broker} {one.name}" for one in self) or "none"
        raise LookupError(f"broker {broker_id} has no purgatory {name!r}; purgatories: {names}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values, grouped by broker."""
        brokers: dict[int, list[dict[str, Any]]] = {}
        for purgatory in self:
            brokers.setdefault(purgatory.broker, []).append(purgatory.to_json())
        return {"brokers": [{"id": broker, "purgatories": rows} for broker, rows in brokers.items()]}


_WAITS_FOR: Final = {
    "DeleteRecords": "followers to delete the records too",
    "ElectLeader": "new leaders",
    "Fetch": "records",
    "Heartbeat": "a heartbeat of the member",
    "Produce": "the high watermark",
    "Rebalance": "members to join or to sync",
    "ShareFetch": "records that nobody has acquired",
    "ThrottledChannel": "the end of its throttle time",
}
"""Texts on the events that operations wait for, by the purgatory's name, unless more details are known."""


def purgatories_status(nodes: Nodes) -> PurgatoriesStatus:
    """Return every purgatory of every live broker, with its parked operations."""
    waits_for = waiting_reasons(nodes)
    return PurgatoriesStatus(
        PurgatoryStatus(
            broker_id,
            statistics.name,
            statistics.watched,
            statistics.num_delayed,
            statistics.completed,
            statistics.expired,
            statistics.purged,
            parked,
            tuple(waits_for(statistics.name, one.keys) for one in parked),
        )
        for broker_id, broker in nodes.brokers.items()
        for purgatory in broker.purgatories
        for statistics in [purgatory.statistics()]
        for parked in [tuple(purgatory.parked())]
    )


def waiting_reasons(nodes: Nodes) -> Callable[[str, Iterable[object]], str]:
    """Return a function that describes what an operation waits for now, from its purgatory's name and its keys."""
    followers_behind = cache(partial(_followers_behind, nodes))

    def waits_for(name: str, keys: Iterable[object]) -> str:
        behind = [text for key in keys for text in followers_behind(key)] if name == "Produce" else []
        return ", ".join(behind) or _WAITS_FOR.get(name, "an event on its keys")

    return waits_for


def _followers_behind(nodes: Nodes, key: object) -> list[str]:
    """Return the in-sync followers whose logs end before the leader's, one text for each log end offset."""
    if not isinstance(key, TopicPartition):
        return []
    try:
        status = partition_status(nodes, *key)
    except UnknownPartitionError:
        return []
    ends = {replica.broker: replica.log_end_offset for replica in status.replicas}
    leader_end = ends.get(status.leader or NO_LEADER, 0)
    behind: dict[int | None, list[str]] = {}
    for broker_id in status.isr:
        end = ends.get(broker_id)  # None for a dead broker
        if broker_id != status.leader and (end or 0) < leader_end:
            state = nodes.node(broker_id).state if broker_id in nodes.nodes else ProcessState.DEAD
            name = str(broker_id) if state is ProcessState.RUNNING else f"{broker_id} ({state.value})"
            behind.setdefault(end, []).append(name)
    return [
        f"{'broker' if len(names) == 1 else 'brokers'} {' and '.join(names)} to fetch {key}"
        f"{'' if end is None else f' from offset {end} on'}"
        for end, names in behind.items()
    ]


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker, alive or not."""

    id: int
    address: str
    """`host:port` of the first listener."""
    listeners: Mapping[str, str]
    """`host:port` of every advertised listener, by its name."""
    state: str
    """`running`, `paused` or `dead`."""
    clients_cut_off: bool
    fenced: bool
    """Whether the controller has fenced the broker, or has not registered it."""
    epoch: int
    """The broker epoch, -1 before its first registration."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One replica of a partition on a live broker."""

    broker: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without `asdict`: with many replicas it would take most of the time."""
        return {
            "broker": self.broker,
            "log_start_offset": self.log_start_offset,
            "high_watermark": self.high_watermark,
            "log_end_offset": self.log_end_offset,
        }


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition in the controller's metadata, and its replicas on live brokers."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    assignment: tuple[int, ...]
    """All brokers with a replica, the preferred leader first."""
    replicas: tuple[ReplicaStatus, ...]

    @property
    def followers(self) -> tuple[int, ...]:
        """The brokers with a replica other than the leader, including dead brokers."""
        return tuple(broker for broker in self.assignment if broker != self.leader)

    @property
    def high_watermark(self) -> int | None:
        """The leader's high watermark, None without a live leader."""
        return next((r.high_watermark for r in self.replicas if r.broker == self.leader), None)

    def require_leader(self) -> int:
        """Return the leader's id. Raises WrongStateError without one."""
        if self.leader is None:
            raise WrongStateError(f"{self.topic}-{self.partition} has no leader")
        return self.leader

    def require_high_watermark(self) -> int:
        """Return the leader's high watermark. Raises WrongStateError without a live leader."""
        high_watermark = self.high_watermark
        if high_watermark is None:
            raise WrongStateError(f"{self.topic}-{self.partition} has no live leader")
        return high_watermark

    def to_json(self) -> dict[str, Any]:
        """Return plain values; without a leader `leader` is -1, as in Kafka's answers."""
        return {
            "partition": self.partition,
            "leader": NO_LEADER if self.leader is None else self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
            "assignment": list(self.assignment),
            "replicas": [replica.to_json() for replica in self.replicas],
        }


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic."""

    name: str
    partitions: tuple[PartitionStatus, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        partitions = [partition.to_json() for partition in self.partitions]
        return {"name": self.name, "partitions": partitions}


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """A cut or slow link from one node to another; the controller is node -1."""

    source: int
    target: int
    drop: bool
    delay_ms: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values; the nodes are called `from` and `to`."""
        return {"from": self.source, "to": self.target, "drop": self.drop, "delay_ms": self.delay_ms}


@dataclass(frozen=True, slots=True)
class FaultStatus:
    """An injected fault that is still active; see `Fault` for the fields."""

    id: int
    api: str
    broker: int | None
    topic: str | None
    partition: int | None
    error: str | None
    lose: str | None
    delay_ms: int
    count: int | None
    """The number of requests that the fault may still hit, None without a limit."""
    hits: int
    """The number of requests that the fault has hit."""
    hook: str | None = None
    """The name of the hook's function, None for a fault that is defined by its fields."""
    throttle_ms: int = 0
    hold: bool = False
    held: int = 0
    """The number of requests that the fault is holding."""
    damage: str | None = None
    only_counts: bool = False
    client_id: str | None = None
    group: str | None = None
    transactional_id: str | None = None
    skip: int = 0
    probability: float = 1

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The memory that the logs of all brokers use."""

    used_bytes: int
    """Used bytes; batches of several replicas count once."""
    limit_bytes: int
    """The limit, at which clients' records are refused."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The whole cluster."""

    cluster_id: str
    memory: MemoryStatus
    brokers: tuple[BrokerStatus, ...]
    links: tuple[LinkStatus, ...]
    faults: tuple[FaultStatus, ...]
    metadata_delay_ms: int
    topics: tuple[TopicStatus, ...]
    groups: GroupsStatus
    transactions: TransactionsStatus
    producers: ProducersStatus
    client_metrics: ClientsMetrics
    """The last metrics that each client has pushed, as `client_metrics` returns them; empty if clients push none."""

    def broker(self, broker_id: int) -> BrokerStatus:
        """Return one broker. Raises UnknownBrokerError."""
        for broker in self.brokers:
            if broker.id == broker_id:
                return broker
        raise UnknownBrokerError(broker_id, [broker.id for broker in self.brokers])

    def topic(self, name: str) -> TopicStatus:
        """Return one topic. Raises UnknownPartitionError."""
        for topic in self.topics:
            if topic.name == name:
                return topic
        raise UnknownPartitionError(name, None, [topic.name for topic in self.topics])

    def partition(self, topic: str, partition: int = 0) -> PartitionStatus:
        """Return one partition. Raises UnknownPartitionError."""
        partitions = self.topic(topic).partitions
        if not 0 <= partition < len(partitions):
            raise UnknownPartitionError(topic, partition, list(range(len(partitions))))
        return partitions[partition]

    def group(self, group_id: str) -> GroupStatus:
        """Return one group. Raises LookupError for an unknown group."""
        return self.groups.of(group_id)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader's id. Raises WrongStateError without one."""
        return self.partition(topic, partition).require_leader()

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the ids of the in-sync replicas."""
        return self.partition(topic, partition).isr

    def followers(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the brokers with a replica other than the leader, including dead brokers."""
        return self.partition(topic, partition).followers

    def high_watermark(self, topic: str, partition: int = 0) -> int:
        """Return the leader's high watermark. Raises WrongStateError without a live leader."""
        return self.partition(topic, partition).require_high_watermark()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "cluster_id": self.cluster_id,
            "memory": asdict(self.memory),
            "brokers": [broker.to_json() for broker in self.brokers],
            "links": [link.to_json() for link in self.links],
            "faults": [fault.to_json() for fault in self.faults],
            "metadata_delay_ms": self.metadata_delay_ms,
            "topics": [topic.to_json() for topic in self.topics],
            **self.groups.to_json(),
            **self.transactions.to_json(),
            **self.producers.to_json(),
            "client_metrics": self.client_metrics.to_json()["clients"],
        }


def cluster_status(nodes: Nodes) -> ClusterStatus:
    """Return a snapshot of the whole cluster."""
    from broker_sim.cluster.status.clients_status import ClientsMetrics  # noqa: PLC0415 - see `Verbs`
    from broker_sim.cluster.status.coordinator_status import groups_status  # noqa: PLC0415 - see `Verbs`
    from broker_sim.cluster.status.transaction_status import (  # noqa: PLC0415 - see `Verbs`
        producers_status,
        transactions_status,
    )

    return ClusterStatus(
        cluster_id=nodes.cluster_id,
        memory=MemoryStatus(nodes.memory.used_bytes, nodes.memory.limit_bytes),
        brokers=tuple(broker_status(nodes, broker_id) for broker_id in nodes.nodes),
        links=tuple(
            LinkStatus(source, target, fault.drop, fault.delay_ms)
            for (source, target), fault in nodes.links.faults.items()
        ),
        faults=tuple(FaultStatus(**injected.to_json()) for injected in nodes.faults.injected),
        metadata_delay_ms=nodes.metadata_delay.max_ms,
        topics=tuple(topic_status(nodes, name) for name in nodes.controller.image.topics),
        groups=groups_status(nodes),
        transactions=transactions_status(nodes),
        producers=producers_status(nodes),
        client_metrics=ClientsMetrics(nodes.client_metrics.statuses()),
    )


def broker_status(nodes: Nodes, broker_id: int) -> BrokerStatus:
    """Return one broker. Raises UnknownBrokerError."""
    node = nodes.node(broker_id)
    registered = nodes.controller.image.brokers.get(broker_id)
    return BrokerStatus(
        id=broker_id,
        address=address_text(*node.address),
        listeners={each.listener: address_text(each.host, each.port) for each in node.endpoints},
        state=node.state.value,
        clients_cut_off=node.clients_cut_off,
        fenced=registered is None or registered.fenced,
        epoch=-1 if registered is None else registered.epoch,
    )


def topic_status(nodes: Nodes, name: str) -> TopicStatus:
    """Return one topic, which must exist."""
    count = len(nodes.controller.image.topics[name].partitions)
    return TopicStatus(name, tuple(_partition_status(nodes, TopicPartition(name, n)) for n in range(count)))


def partition_status(nodes: Nodes, topic: str, partition: int) -> PartitionStatus:
    """Return one partition. Raises UnknownPartitionError."""
    topics = nodes.controller.image.topics
    if topic not in topics:
        raise UnknownPartitionError(topic, None, topics)
    numbers = range(len(topics[topic].partitions))
    if partition not in numbers:
        raise UnknownPartitionError(topic, partition, numbers)
    return _partition_status(nodes, TopicPartition(topic, partition))


def _partition_status(nodes: Nodes, topic_partition: TopicPartition) -> PartitionStatus:
    topic, number = topic_partition
    state = nodes.controller.image.topics[topic].partitions[number]
    replicas = []
    for broker_id in state.replicas:
        broker = nodes.brokers.get(broker_id)
        if broker is None:
            continue
        partition = broker.replica_manager.partitions.get(topic_partition)
        if partition is not None:
            log = partition.log
            replicas.append(ReplicaStatus(broker_id, log.log_start_offset, log.high_watermark, log.log_end_offset))
    return PartitionStatus(
        topic,
        number,
        leader=state.leader if state.has_leader else None,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        assignment=tuple(state.replicas),
        replicas=tuple(replicas),
    )
