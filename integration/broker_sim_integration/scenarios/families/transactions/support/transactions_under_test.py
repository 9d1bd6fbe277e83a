"""The transactional ids of a scenario: their coordinators, and their names in observations."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.message import Struct
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import iter_records, read_end_txn_marker
from broker_sim_integration.clients.admin import elect_leader
from broker_sim_integration.clients.groups import TRANSACTION_KEY, find_coordinators
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import Observation, at_once, untimed
from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import TransactionalProducer
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.normalise import normalised
from broker_sim_integration.scenarios.helpers.observe import fetched

if TYPE_CHECKING:
    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Timing

COMMITTED: Final = 1
"""The isolation level of a reader that sees committed transactions only."""
FOREVER_MS: Final = str(2**63 - 1)
STATE_TOPIC: Final = "__transaction_state"
NAMES_ASKED: Final = 20
QUICK_TRANSACTIONS: Final = QUICK_GROUPS | {
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
"""Expired transactions are looked for every 100 ms; group timeouts are short, too."""
TRANSACTION_FAILOVER: Final = QUICK_TRANSACTIONS | QUICK_FENCING
"""Like QUICK_TRANSACTIONS, and a killed coordinator is fenced after 3 s."""
MARKERS: Final = untimed("the coordinator writes the markers after it has answered EndTxn")

NOT_READY: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
COMPLETE: Final = frozenset({"CompleteCommit", "CompleteAbort"})
UNORDERED: Final = (
    "active_producers",
    "markers",
    "partitions",
    "results_by_partition",
    "results_by_topic_v3_and_below",
    "topic_results",
    "topics",
    "transaction_states",
)
VOLATILE: Final = frozenset({"coordinator_epoch", "last_timestamp", "transaction_start_time_ms"})
"""Times, and the leader epoch of a state partition; only whether they are set is compared."""

_Struct = TypeVar("_Struct", bound=Struct)


class TransactionsUnderTest:
    """Creates producers and observes responses, with `id 1`, `id 2` instead of their transactional ids."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        self._names: dict[str, str] = {}
        self._with_ids: set[int] = set()

    def topic(self, *args: Any, **options: Any) -> Topic:
        """Create a topic like `Topics.create`, with markers in the same segment as older records.

        By default a marker would begin a new segment, because the records have the same old timestamp in each run.
        """
        return self._cluster.topics.create(*args, segment_ms=FOREVER_MS, **options)

    def producer(self, broker: int | None = None, **init: Any) -> TransactionalProducer:
        """Return an initialised producer whose coordinator is this broker, by default the first one."""
        producer = self.uninitialised(broker)
        reply = producer.init(**init)
        assert reply.message.error_code == ErrorCode.NONE, reply.message
        return producer

    def uninitialised(self, broker: int | None = None) -> TransactionalProducer:
        """Return a producer whose id is still unknown to its coordinator."""
        coordinator = self._cluster.first if broker is None else broker
        self._let_it_have_ids(coordinator)
        transactional_id = self._id_at(coordinator)
        self._names[transactional_id] = f"id {len(self._names) + 1}"
        producer = TransactionalProducer(self._cluster.connect(coordinator), transactional_id)
        self._cluster.wait_until(
            lambda: self._described(producer).error_code not in NOT_READY, f"{transactional_id} is served"
        )
        return producer

    def _let_it_have_ids(self, broker: int) -> None:
        """Wait until a broker has a block of producer ids from the controller, which it requests at first use."""
        if broker in self._with_ids:
            return
        client = self._cluster.clients.ask(broker)
        self._cluster.wait_until(lambda: not client.init_producer_id().error_code, f"broker {broker} has producer ids")
        self._with_ids.add(broker)

    def _id_at(self, broker: int) -> str:
        client = self._cluster.clients.ask(broker)
        tried = len(self._names) * NAMES_ASKED
        while True:
            names = [self._cluster.topics.name(f"id.{tried + at}") for at in range(NAMES_ASKED)]
            self._cluster.wait_until(partial(_all_found, client, names), "the transaction state has leaders")
            answers = _coordinators(client, names)
            ours = [answer.key for answer in answers if answer.node_id == broker]
            if ours:
                return ours[0]
            self._elect_preferred_leaders()

    def _elect_preferred_leaders(self) -> None:
        """Elect the preferred leaders of the state topic, which a fault of another scenario may have displaced."""
        asked = self._cluster.clients.ask(self._cluster.first)
        self._cluster.wait_until(
            lambda: all(
                found.isr == frozenset(found.replicas)
                for found in self._cluster.metadata.describe_all(STATE_TOPIC).values()
            ),
            "all replicas of the transaction state are in sync",
        )
        for partition in self._cluster.metadata.describe_all(STATE_TOPIC):
            elect_leader(asked, Topic(STATE_TOPIC, bytes(16), ()), partition=partition)

    def moved(self, producer: TransactionalProducer) -> BrokerClient:
        """Connect the producer to the present coordinator of its id, once that serves it; return the connection."""
        asked = self._cluster.clients.ask(self._cluster.first)
        found: list[int] = []

        def served() -> bool:
            (answer,) = _coordinators(asked, [producer.transactional_id])
            if answer.error_code or not self._cluster.faults.can_answer(answer.node_id):
                return False
            if found != [answer.node_id]:
                found[:] = [answer.node_id]
                producer.client = self._cluster.connect(answer.node_id)
            return self._described(producer).error_code == ErrorCode.NONE

        self._cluster.wait_until(served, f"{producer.transactional_id} has a coordinator")
        return producer.client

    def _described(self, producer: TransactionalProducer) -> messages.DescribeTransactionsResponse.TransactionState:
        return self.describe(producer).message.transaction_states[0]

    def describe(self, *producers: TransactionalProducer) -> Reply[messages.DescribeTransactionsResponse]:
        """Describe the producers' transactions at the coordinator of the first one; return the response."""
        ids = [producer.transactional_id for producer in producers]
        return producers[0].client.request(
            messages.DescribeTransactionsRequest(ids), 0, messages.DescribeTransactionsResponse
        )

    def wait_for_state(self, producer: TransactionalProducer, *states: str) -> None:
        """Wait until DescribeTransactions returns one of these states."""
        self._cluster.wait_until(
            lambda: self._described(producer).transaction_state in states, f"{producer.transactional_id} is {states}"
        )

    def completed(self, producer: TransactionalProducer) -> None:
        """Wait until the markers of the producer's transaction are written."""
        self.wait_for_state(producer, *COMPLETE)

    def ended(self, producer: TransactionalProducer, *, committed: bool = True) -> None:
        """End the producer's transaction and wait until its markers are written."""
        reply = producer.end(committed=committed)
        assert reply.message.error_code == ErrorCode.NONE, reply.message
        self.completed(producer)

    def seen(self, step: str, reply: Reply[Any], timing: Timing | None = None, *, attempt: int = 1) -> Observation:
        """Observe every field of a response with names instead of ids; due at once unless `timing` says otherwise."""
        message = self._renamed(reply.message)
        found = normalised(message, self._cluster.brokers.role, UNORDERED)
        fields = {path: _without_times(path, value) for path, value in found.items()}
        return Observation(
            step,
            error_code=getattr(reply.message, "error_code", None),
            elapsed_ms=reply.elapsed_ms,
            answered_ms=reply.answered_ms,
            timing=timing or at_once(),
            attempt=attempt,
            fields=fields,
        )

    def _renamed(self, struct: _Struct) -> _Struct:
        """Return a copy with names instead of ids, so that lists are sorted by these names."""
        renamed = copy(struct)
        for field in struct.__slots__:
            setattr(renamed, field, self._value(getattr(struct, field)))
        return renamed

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self._names.get(value, value)
            case Struct():
                return self._renamed(value)
            case list():
                return [self._value(item) for item in value]
            case _:
                return value

    def read(
        self,
        step: str,
        client: BrokerClient,
        topic: Topic,
        *,
        offset: int = 0,
        partition: int = 0,
        isolation_level: int = COMMITTED,
    ) -> Observation:
        """Fetch from a partition without waiting, and observe its records and its aborted transactions."""
        reply = client.fetch(topic, offset, partition=partition, max_wait_ms=0, isolation_level=isolation_level)
        return self.fetched(step, reply, at_once(), topic, partition)

    def fetched(
        self, step: str, reply: Reply[messages.FetchResponse], timing: Timing, topic: Topic, partition: int = 0
    ) -> Observation:
        """Observe one partition of a fetch, with the first offsets of its aborted transactions."""
        seen = fetched(step, reply, timing, topic=topic, partition=partition)
        (found,) = (
            answer
            for named in reply.message.responses
            for answer in named.partitions
            if answer.partition_index == partition
        )
        aborted = found.aborted_transactions
        first_offsets = None if aborted is None else [one.first_offset for one in aborted]
        return Observation(
            seen.step,
            seen.error_code,
            seen.base_offset,
            seen.high_watermark,
            elapsed_ms=seen.elapsed_ms,
            answered_ms=seen.answered_ms,
            timing=timing,
            fields={
                "last_stable_offset": found.last_stable_offset,
                "log_start_offset": found.log_start_offset,
                "found": _shown(found.records),
                "aborted": first_offsets,
            },
        )


def _without_times(path: str, value: Any) -> Any:
    if path.rpartition(".")[2] not in VOLATILE:
        return value
    return "none" if value == -1 else "given"


def _shown(records: Any) -> list[str]:
    """Return the values of records, and `commit` or `abort` for markers, each with its offset."""
    shown: list[str] = []
    for batch in split_batches(records or b""):
        header = parse_header(batch)
        if header.is_control:
            marker = read_end_txn_marker(batch)
            shown.append(f"{header.base_offset} {'commit' if marker.is_commit else 'abort'}")
            continue
        shown += [f"{record.offset} {(record.value or b'').decode()}" for record in iter_records(batch)]
    return shown


def _coordinators(client: BrokerClient, names: list[str]) -> list[messages.FindCoordinatorResponse.Coordinator]:
    return find_coordinators(client, *names, key_type=TRANSACTION_KEY).message.coordinators


def _all_found(client: BrokerClient, names: list[str]) -> bool:
    return all(answer.error_code == ErrorCode.NONE for answer in _coordinators(client, names))
