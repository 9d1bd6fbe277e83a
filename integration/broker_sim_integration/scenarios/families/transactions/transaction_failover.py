"""Transactions whose coordinator or leader fails. Kafka: TransactionStateManager, TransactionMarkerChannelManager."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.admin import elect_leader
from broker_sim_integration.clients.admin_requests import move
from broker_sim_integration.clients.groups import Offset, commit, committed_of_groups
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    COMMITTED,
    QUICK_TRANSACTIONS,
    STATE_TOPIC,
    TRANSACTION_FAILOVER,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.broker_configs import LONG_SESSION, SHORT_LAG
from broker_sim_integration.scenarios.helpers.coordinators import next_coordinator
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.groups import OFFSETS_TOPIC, partition_of, ready_group
from broker_sim_integration.scenarios.helpers.mechanisms import NEXT_FETCH
from broker_sim_integration.scenarios.helpers.observe import concluded, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

MOVED: Final = untimed("what a new leader has loaded counts when its followers have fetched")
SHORT_TIMEOUT_MS: Final = 6000
TRANSACTION_LAG: Final = QUICK_TRANSACTIONS | LONG_SESSION | SHORT_LAG
"""A paused follower leaves the ISR after 1.5 s, and is not fenced."""
IDLE_FETCH_MS: Final = 5_000
SLOW_FOLLOWERS: Final = QUICK_TRANSACTIONS | LONG_SESSION | {"replica.fetch.wait.max.ms": str(IDLE_FETCH_MS)}
"""A follower gets a new high watermark with its next fetch: up to 5 s later, if nothing is written."""
BY_NAME: Final = 8
"""A version of OffsetFetch with topic names and several groups."""


def _stable_end(client: BrokerClient, topic: Topic, partition: int = 0) -> int:
    reply = client.list_offset(topic, partition=partition, isolation_level=COMMITTED)
    return reply.message.topics[0].partitions[0].offset


def _wait_for_end(cluster: ClusterUnderTest, client: BrokerClient, topic: Topic, offset: int) -> None:
    cluster.wait_until(lambda: _stable_end(client, topic) == offset, f"{topic.name} is stable up to {offset}")


@scenario(configs=TRANSACTION_FAILOVER, needs={Fault.KILL})
def an_open_transaction_outlives_its_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next coordinator knows its partitions, and the producer continues and commits."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first, cluster.third])
    leader = cluster.connect(cluster.first)
    producer = transactions.producer(cluster.second)
    producer.produce(leader, topic, b"before")
    yield transactions.seen("described", transactions.describe(producer))
    cluster.faults.kill(cluster.second)
    transactions.moved(producer)
    yield transactions.seen("described by the next", transactions.describe(producer), MOVED)
    yield produced("after", producer.produce(leader, topic, b"after"), MOVED, topic=topic)
    yield transactions.read("open", leader, topic)
    yield transactions.seen("commit", producer.end(), MOVED)
    transactions.completed(producer)
    yield transactions.read("committed", leader, topic)
    producer.produce(leader, topic, b"next")
    yield transactions.seen("abort", producer.end(committed=False), MOVED)
    transactions.completed(producer)
    yield transactions.read("aborted", leader, topic)


@scenario(topology="2 partitions x 2 replicas", configs=TRANSACTION_LAG, needs={Fault.PAUSE})
def a_transaction_that_ends_is_ended_by_the_next_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A leader is paused, so its marker is missing when another broker becomes the coordinator."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic(assignments=[[cluster.first, cluster.second], [cluster.third, cluster.first]])
    leader, other = cluster.connect(cluster.first), cluster.connect(cluster.third)
    producer = transactions.producer(cluster.second)
    count = len(cluster.metadata.describe_all(STATE_TOPIC))
    partition = partition_of(producer.transactional_id, count)
    _prefer(cluster, STATE_TOPIC, partition, cluster.first, cluster.second, cluster.third)
    producer.produce(leader, topic, b"0")
    producer.produce(other, topic, b"1", partition=1)
    cluster.faults.pause(cluster.third)
    yield transactions.seen("commit", producer.end(), untimed("the frozen one is in the ISR"))
    _wait_for_end(cluster, leader, topic, 2)
    yield concluded("frozen", state=_state(transactions, producer))
    _elect(cluster, STATE_TOPIC, partition)
    transactions.moved(producer)
    yield concluded("moved", state=_state(transactions, producer))
    reply = producer.again().init()
    yield transactions.seen("init meanwhile", reply)
    cluster.faults.resume(cluster.third)
    transactions.completed(producer)
    yield transactions.seen("described by the next", transactions.describe(producer), MOVED)
    yield transactions.read("first partition", leader, topic)
    seen = transactions.read("second partition", other, topic, partition=1)
    # The marker of the old coordinator was waiting, too. If it is written before that of the next coordinator, the
    # partition has two markers; after it, it is rejected.
    yield concluded("second partition", found=seen.fields["found"][:2])
    yield produced("next", producer.produce(leader, topic, b"2"), MOVED, topic=topic)
    _prefer(cluster, STATE_TOPIC, partition, cluster.second, cluster.first, cluster.third)
    _elect(cluster, STATE_TOPIC, partition)


def _prefer(cluster: ClusterUnderTest, topic: str, partition: int, *order: int) -> None:
    """Make the first of `order` the preferred leader of a partition; the present leader stays."""
    move(cluster.clients.ask(cluster.first), (topic, partition, order))
    cluster.wait_until(
        lambda: cluster.metadata.describe_all(topic)[partition].replicas == order,
        f"{topic}-{partition} has another preferred leader",
    )


def _elect(cluster: ClusterUnderTest, topic: str, partition: int) -> None:
    """Elect the preferred leader of a partition."""
    named = Topic(topic, bytes(16), ())
    elect_leader(cluster.clients.ask(cluster.first), named, partition=partition)

    def is_elected() -> bool:
        found = cluster.metadata.describe_all(topic)[partition]
        return found.leader == found.replicas[0]

    cluster.wait_until(is_elected, f"{topic}-{partition} has its preferred leader")


def _state(transactions: TransactionsUnderTest, producer: TransactionalProducer) -> str:
    return transactions.describe(producer).message.transaction_states[0].transaction_state


@scenario(configs=TRANSACTION_FAILOVER, needs={Fault.KILL})
def a_transaction_times_out_at_the_next_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its timeout counts from its begin, whichever broker coordinates it."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first, cluster.third])
    leader = cluster.connect(cluster.first)
    producer = transactions.producer(cluster.second, timeout_ms=SHORT_TIMEOUT_MS)
    producer.produce(leader, topic, b"late")
    cluster.faults.kill(cluster.second)
    transactions.moved(producer)
    yield concluded("moved", state=_state(transactions, producer))
    transactions.completed(producer)
    yield transactions.seen("described", transactions.describe(producer))
    yield transactions.read("aborted", leader, topic)
    reply = producer.produce(leader, topic, b"zombie")
    yield produced("zombie", reply, MOVED, topic=topic)
    yield transactions.seen("init", producer.init(), MOVED)


@scenario(configs=TRANSACTION_FAILOVER, needs={Fault.STOP})
def a_coordinator_that_stops_hands_its_transactions_over(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A controlled shutdown with an open transaction, which the producer ends at the next coordinator."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first, cluster.third])
    leader = cluster.connect(cluster.first)
    producer = transactions.producer(cluster.second)
    producer.produce(leader, topic, b"before")
    cluster.faults.stop(cluster.second)
    transactions.moved(producer)
    yield transactions.seen("described by the next", transactions.describe(producer), MOVED)
    yield produced("after", producer.produce(leader, topic, b"after"), MOVED, topic=topic)
    yield transactions.seen("commit", producer.end(), MOVED)
    transactions.completed(producer)
    yield transactions.read("committed", leader, topic)


@scenario(topology="1 partition x 2 replicas", configs=TRANSACTION_FAILOVER, needs={Fault.KILL})
def a_new_leader_knows_the_open_transaction(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Sequences continue, the last stable offset stays, and the new leader writes the marker."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.second, cluster.third])
    producer = transactions.producer()
    leader = cluster.connect(cluster.second)
    producer.produce(leader, topic, b"1", b"2")
    cluster.faults.kill(cluster.second)
    cluster.wait_until.leader(topic, cluster.third, via=cluster.third)
    leader = cluster.connect(cluster.third)
    yield transactions.read("open", leader, topic)
    reply = producer.produce(leader, topic, b"gap", sequence=5)
    yield produced("gap", reply, MOVED, topic=topic)
    reply = producer.produce(leader, topic, b"3", sequence=2)
    yield produced("next", reply, MOVED, topic=topic)
    reply = producer.produce(leader, topic, b"3", sequence=2)
    yield produced("duplicate", reply, MOVED, topic=topic)
    yield transactions.seen("commit", producer.end(), MOVED)
    transactions.completed(producer)
    yield transactions.read("committed", leader, topic)


@scenario(topology="a group", configs=TRANSACTION_FAILOVER, needs={Fault.KILL})
def pending_offsets_outlive_the_groups_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next coordinator loads them from its log: unstable at first, then committed by the marker."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster, cluster.second)
    topic = transactions.topic([cluster.first])
    producers = [transactions.producer() for _ in range(3)]
    for number, producer in enumerate(producers):
        producer.commit_offsets(group.tool, group.name, Offset(topic, 0, 10 + number))
        if number < 2:
            transactions.ended(producer, committed=number == 0)
    cluster.faults.kill(cluster.second)
    client = next_coordinator(cluster, group, partial(_has_offset, group))
    for stable in (False, True):
        reply = committed_of_groups(client, {group.name: {topic: [0]}}, require_stable=stable)
        yield group.seen(f"open, stable {stable}", reply, MOVED)
    yield transactions.seen("commit", producers[2].end(), MOVED)
    transactions.completed(producers[2])
    reply = committed_of_groups(client, {group.name: {topic: [0]}}, require_stable=True)
    yield group.seen("committed", reply, MOVED)


def _has_offset(group: GroupUnderTest, client: BrokerClient) -> bool:
    """Whether a broker returns the group's only committed offset."""
    answer = committed_of_groups(client, {group.name: None}).message.groups[0]
    return not answer.error_code and len(answer.topics) == 1


@scenario(topology="1 partition x 2 replicas", configs=TRANSACTION_LAG, needs={Fault.PAUSE})
def a_marker_waits_for_a_frozen_follower(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Readers see the transaction when the follower has left the ISR, long after the response to EndTxn."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first, cluster.third], min_insync_replicas="1")
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    producer.produce(leader, topic, b"1")
    cluster.faults.pause(cluster.third)
    reason = untimed("a frozen broker may be a follower of the transaction state too")
    yield transactions.seen("commit", producer.end(), reason)
    yield transactions.read("frozen", leader, topic)
    cluster.wait_until.isr(topic, cluster.first)
    transactions.completed(producer)
    yield transactions.read("shrunk", leader, topic)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(topic, cluster.first, cluster.third)
    yield produced("next", producer.produce(leader, topic, b"2"), MOVED, topic=topic)


@scenario(topology="1 partition x 2 replicas", configs=TRANSACTION_LAG, needs={Fault.PAUSE})
def a_marker_is_written_below_the_minimum_of_replicas_later(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The coordinator retries until the ISR is large enough; the transaction does not complete before."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first, cluster.third], min_insync_replicas="2")
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    producer.produce(leader, topic, b"1")
    cluster.faults.pause(cluster.third)
    yield transactions.seen("commit", producer.end(), untimed("a follower is frozen"))
    cluster.wait_until.isr(topic, cluster.first)
    yield transactions.read("shrunk", leader, topic)
    yield concluded("shrunk", state=_state(transactions, producer))
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(topic, cluster.first, cluster.third)
    transactions.completed(producer)
    _wait_for_end(cluster, leader, topic, 2)
    yield transactions.read("whole again", leader, topic)


@scenario(topology="a group", configs=SLOW_FOLLOWERS, needs={Fault.PAUSE})
def a_new_coordinator_shows_the_offset_before_the_last_transaction(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A fetch of stable offsets waits for the right offset; other fetches may cause the same work twice.

    The transaction has ended, so neither gets an error. The last follower is paused, so the new leader's high
    watermark does not advance.
    """
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first])
    partition = partition_of(group.name, len(cluster.metadata.describe_all(OFFSETS_TOPIC)))
    _prefer(cluster, OFFSETS_TOPIC, partition, cluster.second, cluster.first, cluster.third)
    for _ in range(2):  # followers learn with the second commit that the first is committed
        commit(group.tool, group.name, Offset(topic, 0, 1))
    producer = transactions.producer(cluster.second)
    producer.commit_offsets(group.tool, group.name, Offset(topic, 0, 2))
    transactions.ended(producer)
    asked = {group.name: {topic: [0]}}
    yield group.seen("before", committed_of_groups(group.tool, asked, require_stable=True))
    cluster.faults.pause(cluster.third)
    _elect(cluster, OFFSETS_TOPIC, partition)
    client = next_coordinator(cluster, group, partial(_answers, group))
    yield group.seen("at the new leader", committed_of_groups(client, asked))
    request = messages.OffsetFetchRequest
    wanted = request.OffsetFetchRequestTopics(name=topic.name, partition_indexes=[0])
    stable = client.send(
        request(groups=[request.OffsetFetchRequestGroup(group_id=group.name, topics=[wanted])], require_stable=True),
        BY_NAME,
        messages.OffsetFetchResponse,
    )
    again = committed_of_groups(cluster.connect(cluster.second), asked)
    yield group.seen("again", again)
    resumed = cluster.faults.resume(cluster.third)
    answer = stable.result()
    yield group.seen("stable", answer, after(answer, resumed, spread_ms=IDLE_FETCH_MS, reason=NEXT_FETCH))
    yield group.seen("replicated", committed_of_groups(client, asked))
    _prefer(cluster, OFFSETS_TOPIC, partition, cluster.first, cluster.second, cluster.third)
    _elect(cluster, OFFSETS_TOPIC, partition)


def _answers(group: GroupUnderTest, client: BrokerClient) -> bool:
    """Whether a broker has loaded the group."""
    answer = committed_of_groups(client, {group.name: None}).message.groups[0]
    return answer.error_code == ErrorCode.NONE
