"""Connections, producers, offsets and segments that reach an age: the broker forgets, closes, rolls or compacts them.

Kafka: Selector, TransactionStateManager, ProducerStateManager, OffsetMetadataManager, LogSegment,
LogCleanerManager. Where a broker takes longer for the first of a kind, that one runs before and is not judged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import split_batches
from broker_sim_integration.clients.broker_client import Append, Position, batch_of
from broker_sim_integration.clients.groups import committed
from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.scenarios.families.compaction.support.compacted_topic import (
    ONE_REPLICA,
    QUICK_CLEANING,
    CompactedTopic,
    records_of,
)
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import TransactionsUnderTest
from broker_sim_integration.scenarios.helpers.groups import ready_group
from broker_sim_integration.scenarios.helpers.observe import answer_or_end
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

AGE_MS: Final = 1500
CHECK_MS: Final = 100
LOOKED_FOR: Final = "the broker looks for them every 100 ms"
REPEATS: Final = 3
OFFSET_COMMIT_VERSION: Final = 4
SHORT_AGES: Final = QUICK_CLEANING | {
    "producer.id.expiration.ms": str(AGE_MS),
    "producer.id.expiration.check.interval.ms": str(CHECK_MS),
    "transactional.id.expiration.ms": str(AGE_MS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": str(CHECK_MS),
    "offsets.retention.check.interval.ms": str(CHECK_MS),
}
"""Producers and transactional ids expire 1.5 s after their last use."""
SHORT_IDLENESS: Final = {"connections.max.idle.ms": str(AGE_MS)}
"""Connections are closed 1.5 s after their last byte."""
POLL_MS: Final = 300


@scenario(topology=ONE_REPLICA, configs=SHORT_IDLENESS)
def an_idle_connection_is_closed_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Closed connections.max.idle.ms after its last byte, even while a request waits for its response."""
    topic = cluster.topics.create([cluster.first])
    for attempt in range(1, REPEATS + 1):
        waiting = cluster.connect(cluster.first).start_fetch(Position(topic), max_wait_ms=20_000)
        due = on_event(AGE_MS, spread_ms=POLL_MS, reason="an idle broker looks at its connections every 300 ms")
        seen = answer_or_end("closed", waiting, due, timeout_ms=20_000)
        yield _attempt(seen, attempt)


def _attempt(seen: Observation, attempt: int) -> Observation:
    return Observation(
        seen.step,
        elapsed_ms=seen.elapsed_ms,
        answered_ms=seen.answered_ms,
        timing=seen.timing,
        attempt=attempt,
        fields=seen.fields,
    )


def _became_old(
    cluster: ClusterUnderTest,
    attempt: int,
    used: Reply[Any],
    is_over: Callable[[], object],
    reason: str = LOOKED_FOR,
    spread_ms: int = CHECK_MS,
) -> Iterator[Observation]:
    """Wait until `is_over()`, due AGE_MS after the request that last used it; attempt 0 is not observed."""
    over_ms = cluster.wait_until(is_over, "its age has come")
    if attempt:
        yield Observation(
            "over",
            elapsed_ms=over_ms - used.sent_ms,
            answered_ms=over_ms,
            timing=on_event(
                used.answered_ms + AGE_MS - used.sent_ms, earliest_ms=AGE_MS, spread_ms=spread_ms, reason=reason
            ),
            attempt=attempt,
        )


@scenario(topology="a transactional id", configs=SHORT_AGES)
def an_unused_transactional_id_is_forgotten_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """transactional.id.expiration.ms after InitProducerId: TRANSACTIONAL_ID_NOT_FOUND."""
    transactions = TransactionsUnderTest(cluster)
    for attempt in range(REPEATS + 1):
        producer = transactions.uninitialised()
        initialised = producer.init()
        is_forgotten = partial(_is_unknown, transactions, producer)
        yield from _became_old(cluster, attempt, initialised, is_forgotten)


def _is_unknown(transactions: TransactionsUnderTest, producer: TransactionalProducer) -> bool:
    (described,) = transactions.describe(producer).message.transaction_states
    return described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@scenario(topology=ONE_REPLICA, configs=SHORT_AGES)
def a_silent_producer_is_forgotten_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """producer.id.expiration.ms after its last batch: DescribeProducers does not contain the producer."""
    topic = cluster.topics.create([cluster.first], message_timestamp_type="LogAppendTime")
    leader = cluster.connect(cluster.first)
    for attempt in range(REPEATS + 1):
        producer_id = cluster.clients.producer_id()
        batch = batch_of([b"last"], producer_id=producer_id, producer_epoch=0, base_sequence=0)
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        assert _has_producers(leader, topic)
        yield from _became_old(cluster, attempt, reply, lambda: not _has_producers(leader, topic))


def _has_producers(leader: BrokerClient, topic: Topic) -> bool:
    request = messages.DescribeProducersRequest
    asked = request([request.TopicRequest(topic.name, [0])])
    reply = leader.request(asked, 0, messages.DescribeProducersResponse)
    return bool(reply.message.topics[0].partitions[0].active_producers)


@scenario(topology="a group", configs=SHORT_AGES)
def a_committed_offset_expires_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The commit contains its retention time; the coordinator's next check after that deletes the offset."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first])
    for attempt in range(REPEATS + 1):
        reply = _commit(group, topic)
        assert reply.message.topics[0].partitions[0].error_code == ErrorCode.NONE

        def is_gone() -> bool:
            return not committed(group.tool, group.name).message.groups[0].topics

        yield from _became_old(cluster, attempt, reply, is_gone)


def _commit(group: GroupUnderTest, topic: Topic) -> Reply[messages.OffsetCommitResponse]:
    request = messages.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    message = request(
        group_id=group.name,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=AGE_MS,
        topics=[request.OffsetCommitRequestTopic(name=topic.name, partitions=[partition])],
    )
    return group.tool.request(message, OFFSET_COMMIT_VERSION, messages.OffsetCommitResponse)


@scenario(topology=ONE_REPLICA, configs=SHORT_AGES)
def a_segment_is_rolled_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first batch appended more than segment.ms after a segment's first batch begins a new segment."""
    for attempt in range(1, REPEATS + 1):
        topic = cluster.topics.create([cluster.first], segment_ms=str(AGE_MS), message_timestamp_type="LogAppendTime")
        leader = cluster.connect(cluster.first)
        first = leader.produce(topic, b"first")
        is_rolled = partial(_rolled, leader, topic)
        reason = "a segment begins with the next batch, of which there is one every 20 ms"
        yield from _became_old(cluster, attempt, first, is_rolled, reason)


def _rolled(leader: BrokerClient, topic: Topic) -> bool:
    """Append one more batch; return whether it is in another segment than the first."""
    appended = leader.produce(topic, b"next").message.responses[0].partition_responses[0]
    answer = leader.fetch(topic, 0, max_wait_ms=0).message.responses[0].partitions[0]
    return len(split_batches(records_of(answer))) <= appended.base_offset


@scenario(topology=ONE_REPLICA, configs=SHORT_AGES)
def records_are_compacted_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """min.compaction.lag.ms after the append of the newest of them, if the log is dirty enough."""
    for attempt in range(REPEATS + 1):
        topic = CompactedTopic(
            cluster,
            min_compaction_lag_ms=str(AGE_MS),
            min_cleanable_dirty_ratio="0",
            message_timestamp_type="LogAppendTime",
        )
        topic.append((b"a", b"1"))
        newest = topic.append((b"a", b"2"))
        topic.append((b"a", b"active"))
        yield from _became_old(cluster, attempt, newest, partial(_is_cleaned, topic))


@scenario(topology=ONE_REPLICA, configs=SHORT_AGES)
def a_log_is_compacted_whatever_the_ratio_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """max.compaction.lag.ms after the append of the oldest record that is not cleaned yet."""
    for attempt in range(REPEATS + 1):
        topic = CompactedTopic(cluster, max_compaction_lag_ms=str(AGE_MS), message_timestamp_type="LogAppendTime")
        oldest = topic.append((b"a", b"1"))
        topic.append((b"a", b"2"))
        topic.append((b"a", b"active"))
        yield from _became_old(cluster, attempt, oldest, partial(_is_cleaned, topic))


def _is_cleaned(topic: CompactedTopic) -> bool:
    return topic.left() == ["1 a=2", "2 a=active"]
