"""Idempotent producers, with sequence numbers. Kafka: ProducerStateManager, ProducerAppendInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import Append, batch_of
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import CONNECTS
from broker_sim_integration.scenarios.helpers.observe import (
    concluded,
    delivered,
    fetched,
    listed,
    produced,
    whole_response,
)
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

LAST_SEQUENCE = 2**31 - 1


class Numbered:
    """An idempotent producer of one partition, whose sequence numbers the scenario chooses."""

    def __init__(self, connection: BrokerClient, topic: Topic, producer_id: int) -> None:
        self._connection = connection
        self._topic = topic
        self._id = producer_id

    def start(
        self, sequence: int, *values: bytes, epoch: int = 0, acks: int = -1, timeout_ms: int = 30_000
    ) -> Pending[messages.ProduceResponse]:
        """Send a batch whose base sequence is `sequence`."""
        batch = batch_of(values or [b"a"], producer_id=self._id, producer_epoch=epoch, base_sequence=sequence)
        append = Append(self._topic, 0, batch)
        return self._connection.start_produce(append, acks=acks, timeout_ms=timeout_ms)


@scenario()
def a_duplicate_is_answered_with_the_first_offset(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A duplicate of one of the last five batches is recognised; nothing is appended a second time."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    for sequence in range(6):
        reply = producer.start(sequence).result()
        yield produced(f"sequence {sequence}", reply, at_once())
    for sequence in (5, 1, 0):
        reply = producer.start(sequence).result()
        yield produced(f"sequence {sequence} again", reply, at_once())
    yield listed("latest", leader.list_offset(topic), at_once())


@scenario()
def a_sequence_out_of_order_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A gap gets OUT_OF_ORDER_SEQUENCE_NUMBER; the next expected sequence is accepted afterwards."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    for sequence, values in ((0, 2), (5, 1), (3, 1), (1, 1), (2, 1), (0, 1)):
        reply = producer.start(sequence, *([b"v"] * values)).result()
        yield produced(f"sequence {sequence}, {values} records", reply, at_once())
    yield listed("latest", leader.list_offset(topic), at_once())


@scenario(topology="1 partition x 1 replica")
def a_new_producer_may_begin_anywhere(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A producer without state on the partition may begin with any sequence."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for first in (7, 0):
        reply = Numbered(leader, topic, cluster.clients.producer_id()).start(first).result()
        yield produced(f"first sequence {first}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def an_older_producer_epoch_is_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_PRODUCER_EPOCH below the known epoch; a new epoch has to begin with sequence 0."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    for epoch, sequence in ((1, 0), (0, 1), (1, 1), (2, 5), (2, 0), (1, 2)):
        reply = producer.start(sequence, epoch=epoch).result()
        yield produced(f"epoch {epoch}, sequence {sequence}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def sequences_wrap_around(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """0 follows 2^31 - 1, also inside a batch."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    for sequence, values in ((LAST_SEQUENCE - 1, 3), (1, 1), (LAST_SEQUENCE - 1, 3), (0, 1)):
        reply = producer.start(sequence, *([b"v"] * values)).result()
        yield produced(f"sequence {sequence}, {values} records", reply, at_once())


@scenario(needs={Fault.PAUSE})
def a_duplicate_of_a_timed_out_batch_waits_for_the_replicas_too(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The retry is a duplicate: not appended again, but parked until all replicas have the batch."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    yield produced("healthy", producer.start(0).result(), at_once())
    cluster.faults.pause(cluster.third)
    reply = producer.start(1, timeout_ms=600).result()
    yield produced("timed out", reply, at_timeout(600))
    reply = producer.start(1, timeout_ms=600).result()
    yield produced("retried", reply, at_timeout(600))
    cluster.faults.resume(cluster.third)
    cluster.wait_until.visible(topic, 2)
    yield produced("retried again", producer.start(1).result(), at_once())
    yield fetched("once", leader.fetch(topic, 0), at_once())


@scenario()
def a_user_producer_with_idempotence_delivers_in_order(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """confluent-kafka with enable.idempotence: three records, offsets 0 to 2."""
    topic = cluster.topics.create()
    producer = cluster.clients.producer(enable_idempotence="true", retries=5)
    producer.warm_up(topic)
    for attempt in (1, 2, 3):
        due = at_once() if attempt > 1 else CONNECTS
        yield delivered("record", producer.produce(topic, b"v"), due, attempt=attempt)
    found = cluster.connect(cluster.first).fetch(topic)
    yield fetched("all", found, at_once())


@scenario(needs={Fault.PAUSE})
def a_duplicate_is_parked_beside_the_first(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Two connections send the same batch while a follower is paused: both wait and get offset 1."""
    topic = cluster.topics.create()
    leader, other = cluster.connect(cluster.first), cluster.connect(cluster.first)
    producer_id = cluster.clients.producer_id()
    producer, twin = (Numbered(client, topic, producer_id) for client in (leader, other))
    yield produced("healthy", producer.start(0).result(), at_once())
    cluster.faults.pause(cluster.third)
    first = producer.start(1, timeout_ms=1500)
    cluster.wait_until.appended(topic, 2)
    second = twin.start(1, timeout_ms=600)
    yield produced("second", second.result(), at_timeout(600))
    yield produced("first", first.result(), at_timeout(1500))
    cluster.faults.resume(cluster.third)
    cluster.wait_until.visible(topic, 2)
    yield fetched("once", leader.fetch(topic, 1), at_once())


@scenario(topology="1 partition x 1 replica")
def a_batch_of_old_and_new_records_is_out_of_order(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Only a complete batch can be a duplicate; a part of one, or more than one, gets an error."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    for sequence, values in ((0, 2), (2, 2), (0, 4), (1, 2), (2, 1), (3, 1), (3, 2), (4, 1)):
        reply = producer.start(sequence, *([b"v"] * values)).result()
        yield produced(f"sequence {sequence}, {values} records", reply, at_once())


@scenario(topology="2 partitions x 1 replica")
def sequences_are_counted_by_partition(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One request to two partitions: a duplicate in one and a gap in the other."""
    topic = cluster.topics.create([cluster.first], partitions=2)
    leader = cluster.connect(cluster.first)
    producer_id = cluster.clients.producer_id()

    def append(partition: int, sequence: int) -> Append:
        batch = batch_of([b"v"], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        return Append(topic, partition, batch)

    for sequences in ((0, 0), (1, 0), (1, 2), (2, 1)):
        appends = [append(partition, sequence) for partition, sequence in enumerate(sequences)]
        reply = leader.start_produce(*appends).result()
        for partition in (0, 1):
            step = f"sequences {sequences}, partition {partition}"
            yield produced(step, reply, at_once(), partition=partition)


@scenario(topology="1 partition x 1 replica")
def a_duplicate_is_known_after_its_records_are_deleted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The producer's state outlives its records: duplicates and gaps are recognised as before."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    for sequence in (0, 1):
        producer.start(sequence).result()
    leader.start_delete_records(topic, -1).result()
    for sequence in (0, 1, 3, 2):
        reply = producer.start(sequence).result()
        yield produced(f"sequence {sequence}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def a_duplicate_has_the_stamp_of_the_first(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With LogAppendTime the response to the duplicate has the time of the append."""
    topic = cluster.topics.create([cluster.first], message_timestamp_type="LogAppendTime")
    leader = cluster.connect(cluster.first)
    producer = Numbered(leader, topic, cluster.clients.producer_id())
    replies = []
    for step in ("first", "duplicate"):
        cluster.wait(20)
        replies.append(producer.start(0).result())
        yield produced(step, replies[-1], at_once())
    first, second = (reply.message.responses[0].partition_responses[0].log_append_time_ms for reply in replies)
    yield concluded("stamps", equal=first == second)


@scenario(topology="none")
def producer_ids_are_given_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Ids of one broker increase, ids of two brokers differ; an id without epoch gets INVALID_REQUEST."""
    ids = [cluster.clients.producer_id() for _ in range(3)]
    yield concluded("of one broker", rise=ids == sorted(set(ids)))
    client = cluster.connect(cluster.first)
    request = messages.InitProducerIdRequest
    cases = {
        "id and epoch": request(None, 1000, producer_id=ids[0], producer_epoch=3),
        "id without epoch": request(None, 1000, producer_id=ids[0]),
        "epoch without id": request(None, 1000, producer_epoch=3),
        "empty transactional id": request("", 1000),
        "no timeout": request(None, 0),
        "negative timeout": request(None, -1),
    }
    for step, wanted in cases.items():
        reply = client.request(wanted, 5, messages.InitProducerIdResponse)
        yield whole_response(step, cluster, reply, at_once())
