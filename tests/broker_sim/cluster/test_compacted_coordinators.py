"""Coordinators whose topics the cleaner has compacted: what is loaded from them is what there was.

Groups, offsets and transactions are written many times over, in virtual time, to the topics as brokers
create them, with small segments. Then each broker in turn leads the compacted partition and loads it.
"""

from itertools import count, islice

import pytest

from broker_sim.chaos.random_run.clients.transactional_requests import TransactionalRequests
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records

ROUNDS = 60
CLEANED_MS = 60_000
SESSION_TIMEOUT_MS = 1_200_000
NO_OFFSET = -1
SEGMENT_BYTES = "600"
TOPIC_RESOURCE = 2
CONFIGS = {"transaction_state_log_num_partitions": 1, "log_cleaner_min_cleanable_ratio": 0.01}


@pytest.fixture
def user(make_user):
    user = make_user(**CONFIGS)
    user.cluster.create_topic(TOPIC, partitions=1, replication_factor=3)
    user.until(lambda: not user.find("any", key_type=1).error_code)
    user.cluster.wait_until_in_sync()
    return user


def ask(user, request, version, broker):
    """Return the answer once no transaction is ending and nothing is being loaded."""
    answers = []

    def is_answered():
        answers[:] = [user.ask(request, version, broker)]
        return error_of(answers[0]) not in {
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        }

    user.until(is_answered)
    return answers[0]


def error_of(answer):
    return getattr(answer, "error_code", ErrorCode.NONE)


def use_small_segments(user, topic):
    change = messages.IncrementalAlterConfigsRequest
    config = change.AlterableConfig("internal.segment.bytes", 0, SEGMENT_BYTES)
    resource = change.AlterConfigsResource(TOPIC_RESOURCE, topic, [config])
    (result,) = user.ask(change([resource]), 1, 1).responses
    assert not result.error_code
    user.cluster.advance(1_000)


def records_of(log):
    """Return all but the markers of transactions, which stay for `delete.retention.ms`."""
    return [
        record
        for segment in log.segments
        for _, batch in segment.batches_from(0)
        if not parse_header(batch).is_control
        for record in iter_records(batch)
    ]


def assert_is_compacted(user, partition):
    """Wait for the cleaner; each key is at most once in the part that it has cleaned, at each broker."""
    user.cluster.advance(CLEANED_MS)
    for broker in (1, 2, 3):
        logs = user.cluster.nodes.nodes[broker].logs
        log = logs.get(partition, user.topic_id(partition.topic))
        records = records_of(log)
        assert len(records) < log.log_end_offset / 2, "hardly anything was removed"
        first_dirty_offset = logs.cleaner.first_dirty_offsets[partition]
        keys = [record.key for record in records if record.offset < first_dirty_offset]
        assert len(keys) == len(set(keys)) > 0


def assert_each_broker_loads(user, partition, look):
    """Each broker leads the partition in turn, and what `look(broker)` tells stays as it is."""
    first = user.cluster.leader(*partition)
    expected = look(first)
    for broker in (*(each for each in (1, 2, 3) if each != first), first):
        user.cluster.transfer_leadership(*partition, broker)
        user.cluster.advance(1_000)
        assert user.cluster.leader(*partition) == broker
        assert look(broker) == expected
    return expected


class Producer:
    """A transactional producer; with another one it shares the partition of the coordinator."""

    def __init__(self, user, transactional_id):
        self.user = user
        self.id = transactional_id
        self.requests = TransactionalRequests(transactional_id, version=2)
        self.begin_again()

    def ask(self, request, topic=TRANSACTION_STATE_TOPIC, partition=0):
        version = self.requests.versions.get(type(request), request.MAX_VERSION)
        return ask(self.user, request, version, self.user.cluster.leader(topic, partition))

    def begin_again(self):
        answer = self.ask(self.requests.init_producer_id(600_000, keeps_id=False))
        self.take(answer)

    def take(self, answer):
        assert answer.error_code == ErrorCode.NONE
        self.requests.take_epoch(answer.producer_id, answer.producer_epoch)

    def commit_offset(self, group, offset):
        """Commit an offset of the group in a transaction, which is left open."""
        self.ask(self.requests.add_group(group))
        partition = self.user.partition(group)
        self.ask(self.requests.commit_offset(group, 0, offset), GROUP_METADATA_TOPIC, partition)

    def end(self, *, is_commit):
        self.take(self.ask(self.requests.end(is_commit=is_commit)))


def groups_beside(user, first, how_many):
    """Return names of groups in the partition of the first one."""
    names = (f"{first}-{number}" for number in count())
    beside = (name for name in names if user.partition(name) == user.partition(first))
    return list(islice(beside, how_many))


def stable_member(user):
    """Return the only member of the stable group "g"; it need not send heartbeats during the test."""
    session = {"session_timeout_ms": SESSION_TIMEOUT_MS}
    leader = user.leader("g")
    member_id = user.ask(user.join(**session), 9, leader).member_id
    assert not user.ask(user.join(member_id, **session), 9, leader).error_code
    request = user.sync(member_id, assignments=[(member_id, b"all")])
    assert user.ask(request, 3, leader).assignment == b"all"
    return member_id


def test_groups_and_offsets_are_loaded_from_a_compacted_log(user):
    partition = TopicPartition(GROUP_METADATA_TOPIC, user.partition("g"))
    use_small_segments(user, GROUP_METADATA_TOPIC)
    simple, deleted, in_transactions = groups_beside(user, "g", 3)
    member_id = stable_member(user)
    producer = Producer(user, "id")
    leader = user.leader("g")
    for number in range(ROUNDS):
        user.commit("g", {0: number, 1: 2 * number}, member=member_id, generation=1)
        for group in (simple, deleted):
            user.commit(group, {0: number}, broker=leader)
        producer.commit_offset(in_transactions, number)
        producer.end(is_commit=number % 3 != 2)
    assert user.delete_groups(deleted, broker=leader) == {deleted: ErrorCode.NONE}
    producer.commit_offset(in_transactions, 2 * ROUNDS)

    def look(broker):
        request = messages.DescribeGroupsRequest(["g"])
        (group,) = user.ask(request, 5, broker).groups
        (member,) = group.members
        return (
            (group.group_state, member.member_id, bytes(member.member_assignment)),
            {
                (name, stable): user.fetch(name, broker=broker, stable=stable)
                for name in ("g", simple, deleted, in_transactions)
                for stable in (False, True)
            },
        )

    assert_is_compacted(user, partition)
    member, offsets = assert_each_broker_loads(user, partition, look)
    assert member == ("Stable", member_id, b"all")
    last = ROUNDS - 1
    for stable in (False, True):
        assert offsets["g", stable] == {("t", 0): last, ("t", 1): 2 * last}
        assert offsets[simple, stable] == {("t", 0): last}
        assert offsets[deleted, stable] == {}
    assert offsets[in_transactions, False] == {(TOPIC, 0): last - 1}
    assert offsets[in_transactions, True] == {(TOPIC, 0): NO_OFFSET}, "a transaction is open"
    producer.end(is_commit=True)
    leader = user.leader("g")
    user.until(lambda: user.fetch(in_transactions, broker=leader, stable=True) == {(TOPIC, 0): 2 * ROUNDS})


def test_transactions_are_loaded_from_a_compacted_log(user):
    partition = TopicPartition(TRANSACTION_STATE_TOPIC, 0)
    producers = {name: Producer(user, name) for name in ("committed", "aborted", "ongoing")}
    use_small_segments(user, TRANSACTION_STATE_TOPIC)
    for _ in range(ROUNDS):
        for name, producer in producers.items():
            producer.commit_offset("g", 1)
            producer.end(is_commit=name != "aborted")
    ongoing = producers["ongoing"]
    ongoing.commit_offset("g", 7)

    def look(broker):
        request = messages.DescribeTransactionsRequest(list(producers))
        return {
            state.transactional_id: (
                state.transaction_state,
                (state.producer_id, state.producer_epoch),
                (state.transaction_timeout_ms, state.transaction_start_time_ms),
                [(topic.topic, topic.partitions) for topic in state.topics],
            )
            for state in user.ask(request, 0, broker).transaction_states
        }

    user.until(lambda: look(user.cluster.leader(*partition))["aborted"][0] == "CompleteAbort")
    assert_is_compacted(user, partition)
    states = assert_each_broker_loads(user, partition, look)
    assert [state for state, *_ in states.values()] == ["CompleteCommit", "CompleteAbort", "Ongoing"]
    assert states["ongoing"][-1] == [(GROUP_METADATA_TOPIC, [user.partition("g")])]
    for producer in producers.values():
        if producer is not ongoing:
            producer.commit_offset("g", 6)
        producer.end(is_commit=True)
    leader = user.leader("g")
    user.until(lambda: user.fetch("g", broker=leader, stable=True) == {(TOPIC, 0): 6})
