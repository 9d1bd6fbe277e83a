"""Claims about the requests of one broker, in the words of Kafka's `ReplicaManagerTest`."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata import PartitionState
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch
from broker_sim.replica import FetchIsolation, FetchParams

BATCH = build_batch([b"value"])
UNKNOWN = 9
"""No partition has this number."""


def key(number=0):
    return TopicPartition("topic", number)


def parked(broker):
    return {p.name: p.num_delayed() for p in broker.purgatories if p.num_delayed()}


def alone(broker, number=0, **configs):
    """Let broker 1 lead a partition without followers."""
    return broker.lead(number, replicas=(1,), isr=(1,), **configs)


# -- look-up --------------------------------------------------------------------------------------


def test_partition_on_other_brokers_is_not_led_here_and_one_on_none_is_unknown(broker):
    partition = broker.lead()
    manager = broker.manager
    assert manager.get_partition_or_error(key()) is partition
    assert manager.get_partition_or_error(key(1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert manager.get_partition_or_error(key(UNKNOWN)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- produce --------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1])
def test_produce_without_acks_all_is_answered_at_once(broker, acks):
    broker.lead()
    (answer,) = broker.produce(acks=acks)
    assert (answer[0].error_code, answer[0].base_offset) == (ErrorCode.NONE, 0)
    assert parked(broker) == {}


def test_produce_with_acks_all_waits_for_every_replica(broker):
    broker.lead()
    answers = broker.produce()
    assert parked(broker) == {"Produce": 1}
    broker.replicate(2, 1)
    assert answers == []
    broker.replicate(3, 1)
    assert [answer[0].error_code for answer in answers] == [ErrorCode.NONE]
    assert parked(broker) == {}


def test_produce_with_acks_all_to_a_single_replica_is_answered_at_once(broker):
    alone(broker)
    assert len(broker.produce()) == 1


@pytest.mark.parametrize(("waited_ms", "is_answered"), [(999, False), (1_000, True)])
def test_produce_with_acks_all_times_out_with_its_base_offset(broker, waited_ms, is_answered):
    broker.lead()
    answers = broker.produce(timeout_ms=1_000)
    broker.advance(waited_ms)
    assert len(answers) == is_answered
    if is_answered:
        assert answers[0][0].error_code is ErrorCode.REQUEST_TIMED_OUT
        assert answers[0][0].base_offset == 0


def test_every_partition_has_its_own_error(broker):
    alone(broker, 0)
    broker.open(1).make_follower(PartitionState((1, 2), (1, 2), 2, 0, 0))
    (answer,) = broker.produce(0, 1, 2, UNKNOWN, acks=1)
    assert {number: status.error_code for number, status in answer.items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        2: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_produce_whose_appends_all_fail_does_not_wait(broker):
    broker.lead(isr=(1,), min_insync_replicas=2)
    (answer,) = broker.produce(0, UNKNOWN)
    assert answer[0].error_code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert parked(broker) == {}


def test_failed_partition_waits_with_the_others_and_keeps_its_error(broker):
    broker.lead()
    answers = broker.produce(0, UNKNOWN, timeout_ms=1_000)
    assert answers == []
    broker.advance(1_000)
    codes = [answers[0][number].error_code for number in (0, UNKNOWN)]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_only_an_unexpected_error_comes_with_the_log_start(broker):
    alone(broker, 0, max_message_bytes=1)
    alone(broker, 1, cleanup_policy=("compact",))
    (answer,) = broker.produce(0, 1, acks=1)
    assert answer[0].error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert answer[0].log_start_offset == -1
    assert answer[1].error_code is ErrorCode.INVALID_RECORD
    assert answer[1].log_start_offset == 0
    assert [error.batch_index for error in answer[1].record_errors] == [0]
    assert answer[1].error_message


def test_append_wakes_fetches_after_the_append_has_returned(broker):
    """Completions go through the action queue, so none runs inside another request's append."""
    alone(broker)
    fetched = broker.fetch(max_wait_ms=60_000)
    answers = []
    broker.manager.append_records({key(): BATCH}, answers.append, timeout_ms=0, required_acks=1)
    assert (len(answers), len(fetched)) == (1, 0)
    broker.actions.try_complete_actions()
    assert fetched[0][0].size_bytes == len(BATCH)


def test_append_that_does_not_move_the_high_watermark_wakes_only_followers(broker):
    broker.lead()
    consumer = broker.fetch(max_wait_ms=60_000)
    follower = broker.fetch(max_wait_ms=60_000, isolation=FetchIsolation.LOG_END, replica_id=2)
    broker.produce(acks=1)
    assert (len(consumer), len(follower)) == (0, 1)


# -- fetch ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"max_wait_ms": 0}, {"min_bytes": 0}, {"offset": 5}, {"current_leader_epoch": 7}],
    ids=["no wait", "no min bytes", "error: offset", "error: epoch"],
)
def test_fetch_that_need_not_or_cannot_wait_is_answered_at_once(broker, options):
    alone(broker)
    assert len(broker.fetch(**options)) == 1
    assert parked(broker) == {}


def test_fetch_of_no_partition_is_answered_at_once(broker):
    answers = []
    params = FetchParams(max_wait_ms=500, min_bytes=1, max_bytes=1, isolation=FetchIsolation.LOG_END)
    broker.manager.fetch_messages(params, [], answers.append)
    assert answers == [[]]


def test_fetch_answers_every_partition_with_its_own_error(broker):
    alone(broker)
    (answer,) = broker.fetch(0, 1, UNKNOWN)
    assert {number: data.error_code for number, data in answer.items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize(
    ("topic_id", "expected"),
    [(bytes(16), ErrorCode.NONE), (b"t" * 16, ErrorCode.NONE), (b"u" * 16, ErrorCode.INCONSISTENT_TOPIC_ID)],
)
def test_fetch_may_have_the_topic_id_or_no_id(broker, topic_id, expected):
    alone(broker)
    (answer,) = broker.fetch(topic_id=topic_id, max_wait_ms=0)
    assert answer[0].error_code is expected


def test_fetch_reads_the_partitions_in_order_up_to_its_max_bytes(broker):
    for number in range(3):
        alone(broker, number)
        broker.produce(number, acks=1)
        broker.produce(number, acks=1)
    (answer,) = broker.fetch(2, 0, 1, max_bytes=3 * len(BATCH))
    sizes = {number: data.size_bytes // len(BATCH) for number, data in answer.items()}
    assert sizes == {2: 2, 0: 1, 1: 0}


def test_partition_is_read_up_to_its_own_limit(broker):
    alone(broker)
    for _ in range(3):
        broker.produce(acks=1)
    (answer,) = broker.fetch(partition_max_bytes=2 * len(BATCH))
    assert answer[0].size_bytes == 2 * len(BATCH)


def test_first_batch_is_returned_whole_whatever_the_limits(broker):
    alone(broker, 0)
    alone(broker, 1)
    broker.produce(0, acks=1)
    broker.produce(1, acks=1)
    (answer,) = broker.fetch(0, 1, max_bytes=1)
    assert [answer[number].size_bytes for number in (0, 1)] == [len(BATCH), 0]


def test_waiting_fetch_is_read_again_when_it_ends(broker):
    alone(broker)
    answers = broker.fetch(max_wait_ms=500, min_bytes=10_000)
    broker.produce(acks=1)
    assert answers == []
    broker.advance(500)
    assert answers[0][0].size_bytes == len(BATCH)


def test_second_read_of_a_follower_does_not_move_its_state(broker):
    """Its fetch has shown its position once, when it arrived."""
    partition = broker.lead(replicas=(1, 2), isr=(1, 2))
    broker.fetch(max_wait_ms=500, isolation=FetchIsolation.LOG_END, replica_id=2)
    fetched_ms = partition.replica_states.followers[2].last_fetch_time_ms
    broker.advance(500)
    assert partition.replica_states.followers[2].last_fetch_time_ms == fetched_ms


def test_produce_is_answered_before_the_fetch_that_completes_it_waits(broker):
    broker.lead(replicas=(1, 2), isr=(1, 2))
    waiting_fetches = []
    broker.manager.append_records(
        {key(): BATCH},
        lambda _: waiting_fetches.append(broker.purgatories.fetch.num_delayed()),
        timeout_ms=1_000,
        required_acks=-1,
    )
    broker.fetch(offset=1, isolation=FetchIsolation.LOG_END, replica_id=2)
    assert waiting_fetches == [0]
    assert parked(broker) == {"Fetch": 1}


@pytest.mark.parametrize("is_committed", [True, False])
def test_only_committed_reads_list_aborted_transactions(broker, is_committed):
    alone(broker)
    broker.produce(acks=1)
    isolation = FetchIsolation.TXN_COMMITTED if is_committed else FetchIsolation.HIGH_WATERMARK
    (answer,) = broker.fetch(isolation=isolation)
    assert answer[0].aborted_transactions == ([] if is_committed else None)


def test_committed_read_ends_before_an_open_transaction(broker):
    alone(broker)
    broker.produce(acks=1)
    open_transaction = build_batch(
        [Record(b"value")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    broker.logs.producers.transaction_verification_enabled = False
    broker.manager.append_records({key(): open_transaction}, lambda _: None, timeout_ms=0, required_acks=1)
    (committed,) = broker.fetch(isolation=FetchIsolation.TXN_COMMITTED)
    (all_records,) = broker.fetch()
    assert committed[0].size_bytes == len(BATCH)
    assert all_records[0].size_bytes == len(BATCH) + len(open_transaction)
    assert (committed[0].last_stable_offset, committed[0].high_watermark) == (1, 2)


# -- delete records -------------------------------------------------------------------------------


@pytest.fixture
def deletable(broker):
    """A partition with three replicated records, of which the followers have deleted none."""
    partition = broker.lead()
    for end_offset in (1, 2, 3):
        broker.produce()
        for follower in (2, 3):
            broker.replicate(follower, end_offset, log_start_offset=0)
    return partition


def test_deletion_waits_for_the_log_start_of_every_replica(broker, deletable):
    answers = broker.delete_records(2)
    assert deletable.log.log_start_offset == 2
    broker.replicate(2, 3, log_start_offset=2)
    assert answers == []
    broker.replicate(3, 3, log_start_offset=2)
    assert [(a.error_code, a.low_watermark) for a in answers] == [(ErrorCode.NONE, 2)]


def test_deletion_without_followers_is_answered_at_once(broker):
    alone(broker)
    broker.produce(acks=1)
    (answer,) = broker.delete_records(1)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(
    ("offset", "number", "expected"),
    [
        (4, 0, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (0, UNKNOWN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_refused_deletion_is_answered_at_once(broker, deletable, offset, number, expected):
    (answer,) = broker.delete_records(offset, number)
    assert (answer.error_code, answer.low_watermark) == (expected, -1)


# -- periodic work --------------------------------------------------------------------------------


def test_isr_shrinks_are_checked_in_all_led_partitions(broker):
    partitions = [broker.lead(number) for number in (0, 1)]
    for number in (0, 1):
        broker.produce(number, acks=1)
    broker.clock.advance(10_001)
    broker.manager.maybe_shrink_isr()
    assert [pending.proposed_isr for pending in broker.proposals] == [{1}, {1}]
    assert all(partition.isr_state.is_inflight for partition in partitions)


def test_checkpointed_high_watermark_survives_a_kill(broker):
    partition = alone(broker)
    broker.produce(acks=1)
    broker.logs.checkpoint_high_watermarks()
    broker.produce(acks=1)
    partition.log.recover()
    assert partition.log.high_watermark == 1
