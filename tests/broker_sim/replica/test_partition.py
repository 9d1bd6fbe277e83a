"""Claims about one partition on its broker, in the words of Kafka's `PartitionTest`."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import PartitionState
from broker_sim.protocol.record_batch import rebase
from broker_sim.protocol.records import build_batch
from broker_sim.replica import CommittedIsr

LAG_TIME_MAX_MS = 10_000
BATCH = build_batch([b"value"])


def state(*, isr=(1, 2, 3), leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3)):
    return PartitionState(replicas, isr, leader, leader_epoch, partition_epoch)


def code_of(function, *args, **kwargs):
    with pytest.raises(ApiError) as caught:
        function(*args, **kwargs)
    return caught.value.error_code


def append(partition, acks=1):
    """Append one record; return its offset."""
    info, _ = partition.append_records_to_leader(BATCH, acks)
    return info.first_offset


# -- leader and follower --------------------------------------------------------------------------


def test_leader_begins_its_epoch_at_its_log_end(broker):
    partition = broker.lead()
    append(partition)
    assert not partition.make_leader(state(leader_epoch=4, partition_epoch=1))
    assert (partition.leader_epoch, partition.leader_epoch_start_offset) == (4, 1)
    assert partition.log.leader_epoch_cache.latest_epoch == 4


def test_follower_that_becomes_leader_is_a_new_leader(broker):
    partition = broker.open()
    assert partition.make_follower(state(leader=2))
    assert partition.make_leader(state(leader_epoch=1, partition_epoch=1))
    assert partition.is_leader
    assert partition.leader_id == 1


@pytest.mark.parametrize("partition_epoch", [6, 7])
def test_older_partition_epoch_changes_nothing(broker, partition_epoch):
    partition = broker.open()
    partition.make_leader(state(leader_epoch=3, partition_epoch=7))
    old = state(leader=2, leader_epoch=9, partition_epoch=partition_epoch)
    is_applied = partition_epoch >= 7
    assert partition.make_follower(old) == is_applied
    assert partition.is_leader != is_applied
    partition = broker.open()
    partition.make_follower(state(leader=2, leader_epoch=3, partition_epoch=7))
    old = state(leader_epoch=9, partition_epoch=partition_epoch)
    assert partition.make_leader(old) == is_applied
    assert partition.is_leader == is_applied


def test_follower_fetches_anew_only_in_a_new_leader_epoch(broker):
    partition = broker.open()
    assert partition.make_follower(state(leader=2, leader_epoch=1))
    assert not partition.make_follower(state(leader=2, leader_epoch=1, partition_epoch=1))
    assert partition.make_follower(state(leader=3, leader_epoch=2, partition_epoch=2))
    assert partition.leader_id == 3


def test_former_leader_drops_its_followers(broker):
    partition = broker.lead()
    partition.make_follower(state(leader=2, leader_epoch=1, partition_epoch=1))
    assert not partition.replica_states.followers
    assert partition.isr_state.isr == frozenset()
    assert not partition.is_under_min_isr


def test_new_leader_starts_without_positions_of_its_followers(broker):
    partition = broker.lead()
    append(partition)
    broker.replicate(2, 1)
    partition.make_follower(state(leader=2, leader_epoch=1, partition_epoch=1))
    partition.make_leader(state(leader_epoch=2, partition_epoch=2))
    assert partition.replica_states.followers[2].log_end_offset == -1


def test_leader_of_the_next_epoch_keeps_the_positions_of_its_followers(broker):
    partition = broker.lead()
    append(partition)
    broker.replicate(2, 1)
    partition.make_leader(state(leader_epoch=1, partition_epoch=1))
    assert partition.replica_states.followers[2].log_end_offset == 1


def test_reassigned_replicas_come_and_go(broker):
    partition = broker.lead()
    partition.make_leader(state(replicas=(1, 3, 4), isr=(1, 3), partition_epoch=1))
    assert set(partition.replica_states.followers) == {3, 4}


# -- the request's leader epoch -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, None), (3, None), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_request_may_have_the_current_leader_epoch_or_none(broker, epoch, expected):
    partition = broker.lead(leader_epoch=3)
    if expected is None:
        assert partition.local_log(epoch, require_leader=True) is partition.log
    else:
        assert code_of(partition.local_log, epoch, require_leader=True) is expected


def test_follower_refuses_requests_that_require_the_leader(broker):
    partition = broker.open()
    partition.make_follower(state(leader=2))
    assert partition.local_log(-1, require_leader=False) is partition.log
    refused = code_of(partition.local_log, -1, require_leader=True)
    assert refused is ErrorCode.NOT_LEADER_OR_FOLLOWER
    refused = code_of(partition.append_records_to_leader, BATCH, 1)
    assert refused is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.log_end_offset == 0


# -- append ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("acks", "is_appended"), [(-1, False), (1, True), (0, True)])
def test_only_acks_all_needs_the_minimum_isr(broker, acks, is_appended):
    partition = broker.lead(isr=(1,), min_insync_replicas=2)
    if is_appended:
        assert append(partition, acks) == 0
    else:
        refused = code_of(partition.append_records_to_leader, BATCH, acks)
        assert refused is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == int(is_appended)


@pytest.mark.parametrize(("min_isr", "replicas"), [(3, (1,)), (9, (1, 2))])
def test_minimum_isr_is_capped_at_the_number_of_replicas(broker, min_isr, replicas):
    partition = broker.lead(replicas=replicas, isr=replicas, min_insync_replicas=min_isr)
    assert partition.effective_min_isr == len(replicas)
    assert append(partition, acks=-1) == 0


def test_append_returns_whether_the_high_watermark_moved(broker):
    alone = broker.lead(0, replicas=(1,), isr=(1,))
    assert alone.append_records_to_leader(BATCH, 1)[1]
    replicated = broker.lead(1)
    assert not replicated.append_records_to_leader(BATCH, 1)[1]


def test_follower_appends_records_from_its_leader(broker):
    partition = broker.open()
    partition.make_follower(state(leader=2, leader_epoch=4))
    partition.append_records_to_follower([rebase(memoryview(BATCH), 0, 4)])
    assert partition.log.log_end_offset == 1
    partition.append_records_to_follower([rebase(memoryview(BATCH), 1, 5)])
    assert partition.log.log_end_offset == 1, "a batch of a newer epoch is left out"


def test_empty_follower_log_may_begin_in_the_middle_of_a_batch(broker):
    """After a deletion of records, the leader's log starts inside its first batch."""
    partition = broker.open()
    partition.make_follower(state(leader=2))
    partition.log.truncate_fully_and_start_at(7)
    batch = rebase(memoryview(build_batch([b"a", b"b", b"c"])), 5, 0)
    partition.append_records_to_follower([batch])
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (5, 8)


def test_follower_log_with_records_refuses_a_batch_before_its_end(broker):
    partition = broker.open()
    partition.make_follower(state(leader=2))
    for offset in (0, 1):
        partition.append_records_to_follower([rebase(memoryview(BATCH), offset, 0)])
    old = [rebase(memoryview(BATCH), 1, 0)]
    assert code_of(partition.append_records_to_follower, old) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert partition.log.log_end_offset == 2


# -- the high watermark ---------------------------------------------------------------------------


def test_high_watermark_is_the_smallest_log_end_of_the_isr(broker):
    partition = broker.lead()
    for _ in range(3):
        append(partition)
    broker.replicate(2, 3)
    assert partition.log.high_watermark == 0
    broker.replicate(3, 1)
    assert partition.log.high_watermark == 1
    broker.replicate(3, 3)
    assert partition.log.high_watermark == 3


def test_replica_outside_the_isr_holds_the_high_watermark_only_while_it_is_caught_up(broker):
    """A caught-up replica may join soon, and must then have all that consumers have seen."""
    partition = broker.lead(isr=(1, 2))
    append(partition)
    broker.replicate(2, 1)
    broker.replicate(3, 0)
    append(partition)
    broker.replicate(2, 2)
    assert (partition.log.high_watermark, broker.proposals) == (1, [])
    broker.clock.advance(LAG_TIME_MAX_MS + 1)
    append(partition)
    broker.replicate(2, 3)
    assert partition.log.high_watermark == 3


def test_fenced_replica_outside_the_isr_does_not_hold_the_high_watermark(broker):
    partition = broker.lead(isr=(1, 2))
    broker.set_broker(3, fenced=True)
    append(partition)
    broker.replicate(2, 1)
    assert partition.log.high_watermark == 1


def test_high_watermark_stays_while_the_isr_is_too_small(broker):
    partition = broker.lead(isr=(1, 2), min_insync_replicas=3)
    append(partition)
    broker.replicate(2, 1)
    assert partition.is_under_min_isr
    assert partition.log.high_watermark == 0
    broker.replicate(3, 1)
    broker.accept(partition)
    assert not partition.is_under_min_isr
    assert partition.log.high_watermark == 1


def test_smaller_minimum_isr_moves_the_high_watermark_at_once(broker):
    partition = broker.lead(replicas=(1, 2), isr=(1,), min_insync_replicas=2)
    append(partition)
    assert partition.log.high_watermark == 0
    partition.reconfigure(partition.config.replaced(min_insync_replicas=1))
    assert partition.log.high_watermark == 1


def test_joining_replica_counts_for_the_high_watermark_before_the_controller_answers(broker):
    partition = broker.lead(isr=(1, 2))
    append(partition)
    broker.replicate(3, 0)
    append(partition)
    assert broker.proposals[-1].proposed_isr == {1, 2, 3}
    broker.clock.advance(LAG_TIME_MAX_MS + 1)
    broker.replicate(2, 2)
    assert partition.log.high_watermark == 0, "replica 3 has nothing yet"
    broker.replicate(3, 2)
    assert partition.log.high_watermark == 2


def test_leaving_replica_counts_for_the_high_watermark_until_the_controller_answers(broker):
    partition = broker.lead()
    append(partition)
    broker.clock.advance(LAG_TIME_MAX_MS + 1)
    broker.replicate(2, 1)
    partition.maybe_shrink_isr()
    assert broker.proposals[-1].proposed_isr == {1, 2}
    assert partition.isr_state.maximal_isr == {1, 2, 3}
    assert partition.log.high_watermark == 0
    broker.accept(partition)
    assert partition.isr_state == CommittedIsr(frozenset({1, 2}))
    assert partition.log.high_watermark == 1


# -- expand and shrink the ISR --------------------------------------------------------------------


def proposed(broker):
    return [pending.proposed_isr for pending in broker.proposals]


def test_replica_joins_once_it_has_the_high_watermark_and_the_epoch_start(broker):
    partition = broker.lead(isr=(1, 2))
    for _ in range(2):
        append(partition)
    partition.make_leader(state(isr=(1, 2), leader_epoch=1, partition_epoch=1))
    broker.replicate(3, 1)
    assert proposed(broker) == [], "it has the high watermark 0, but not the epoch's start 2"
    broker.replicate(3, 2)
    assert proposed(broker) == [{1, 2, 3}]


@pytest.mark.parametrize(
    ("is_fenced", "replica_epoch", "joins"), [(False, 5, True), (False, -1, True), (True, 5, False), (False, 6, False)]
)
def test_replica_joins_only_if_unfenced_and_in_its_current_broker_epoch(broker, is_fenced, replica_epoch, joins):
    broker.lead(isr=(1, 2))
    broker.set_broker(3, fenced=is_fenced, epoch=5)
    broker.replicate(3, 0, replica_epoch=replica_epoch)
    assert proposed(broker) == ([{1, 2, 3}] if joins else [])


def test_fetch_with_a_previous_broker_epoch_is_refused_and_moves_nothing(broker):
    partition = broker.lead()
    append(partition)
    broker.set_broker(2, epoch=6)
    refused = broker.replicate(2, 1, replica_epoch=5)
    assert refused.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.replica_states.followers[2].log_end_offset == 0


def test_only_one_change_of_the_isr_is_in_flight(broker):
    partition = broker.lead(isr=(1,))
    broker.replicate(2, 0)
    broker.replicate(3, 0)
    assert proposed(broker) == [{1, 2}]
    broker.accept(partition)
    broker.replicate(3, 0)
    assert proposed(broker) == [{1, 2}, {1, 2, 3}]


@pytest.mark.parametrize("waited_ms", [LAG_TIME_MAX_MS - 1, LAG_TIME_MAX_MS, LAG_TIME_MAX_MS + 1])
def test_follower_leaves_once_it_lags_for_longer_than_the_limit(broker, waited_ms):
    partition = broker.lead()
    append(partition)
    broker.clock.advance(waited_ms)
    broker.replicate(2, 1)
    partition.maybe_shrink_isr()
    assert proposed(broker) == ([{1, 2}] if waited_ms > LAG_TIME_MAX_MS else [])


def test_follower_with_the_whole_log_never_leaves(broker):
    partition = broker.lead()
    broker.clock.advance(10 * LAG_TIME_MAX_MS)
    partition.maybe_shrink_isr()
    assert proposed(broker) == []


@pytest.mark.parametrize("keeps_up", [True, False])
def test_follower_that_reaches_the_leaders_previous_end_was_caught_up_then(broker, keeps_up):
    """The follower never has the newest record, but is never more than one fetch behind; otherwise it leaves."""
    partition = broker.lead()
    for end_offset in range(1, 5):
        append(partition)
        broker.clock.advance(LAG_TIME_MAX_MS // 2)
        broker.replicate(2, end_offset)
        broker.replicate(3, end_offset - 1 if keeps_up else 0)
    partition.maybe_shrink_isr()
    assert proposed(broker) == ([] if keeps_up else [{1, 2}])


@pytest.mark.parametrize(
    ("error", "is_sent_again", "is_pending"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
    ],
)
def test_refused_change_is_dropped_kept_or_sent_again(broker, error, is_sent_again, is_pending):
    partition = broker.lead(isr=(1, 2))
    broker.replicate(3, 0)
    assert partition.fail_alter_partition(broker.proposals[0], error) == is_sent_again
    assert partition.isr_state.is_inflight == is_pending


def test_controller_response_with_an_older_epoch_changes_nothing(broker):
    partition = broker.lead(isr=(1, 2), leader_epoch=2)
    broker.replicate(3, 0)
    partition.complete_alter_partition(broker.proposals[0], frozenset({1, 2, 3}), 1, 1)
    assert partition.isr_state is broker.proposals[0]


def test_controller_response_after_newer_metadata_changes_nothing(broker):
    partition = broker.lead(isr=(1, 2))
    broker.replicate(3, 0)
    partition.make_leader(state(isr=(1, 2), partition_epoch=3))
    broker.accept(partition)
    assert partition.isr_state == CommittedIsr(frozenset({1, 2}))
    (refused,) = broker.proposals
    assert not partition.fail_alter_partition(refused, ErrorCode.UNKNOWN_SERVER_ERROR)


# -- acks=all -------------------------------------------------------------------------------------


def test_append_is_done_when_the_high_watermark_reaches_it(broker):
    partition = broker.lead()
    append(partition)
    assert partition.check_enough_replicas_reach_offset(1) == (False, ErrorCode.NONE)
    broker.replicate(2, 1)
    broker.replicate(3, 1)
    assert partition.check_enough_replicas_reach_offset(1) == (True, ErrorCode.NONE)
    assert partition.check_enough_replicas_reach_offset(2) == (False, ErrorCode.NONE)


def test_acks_all_is_answered_once_the_slow_follower_has_left(broker):
    partition = broker.lead()
    answers = broker.produce(timeout_ms=60_000)
    broker.replicate(2, 1)
    broker.clock.advance(LAG_TIME_MAX_MS + 1)
    partition.maybe_shrink_isr()
    assert answers == []
    broker.accept(partition)
    assert [statuses[0].error_code for statuses in answers] == [ErrorCode.NONE]


def test_append_completes_with_an_error_if_the_isr_became_too_small(broker):
    partition = broker.lead(isr=(1, 2))
    append(partition)
    broker.replicate(2, 1)
    broker.clock.advance(LAG_TIME_MAX_MS + 1)
    broker.replicate(3, 1)
    partition.config = partition.config.replaced(min_insync_replicas=3)
    done = partition.check_enough_replicas_reach_offset(1)
    assert done == (True, ErrorCode.NONE), "the maximal ISR counts, with replica 3"
    partition.replica_states.isr_state = CommittedIsr(frozenset({1, 2}))
    done = partition.check_enough_replicas_reach_offset(1)
    assert done == (True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def test_append_fails_if_the_leader_has_become_a_follower(broker):
    partition = broker.lead()
    append(partition)
    partition.make_follower(state(leader=2, leader_epoch=1, partition_epoch=1))
    done = partition.check_enough_replicas_reach_offset(1)
    assert done == (False, ErrorCode.NOT_LEADER_OR_FOLLOWER)


# -- fetch ----------------------------------------------------------------------------------------


def test_follower_fetches_to_the_log_end_and_a_consumer_to_the_high_watermark(broker):
    partition = broker.lead()
    append(partition)
    (consumer,) = broker.fetch(max_wait_ms=0)
    follower = broker.replicate(2, 0)
    assert (consumer[0].size_bytes, follower.size_bytes) == (0, len(BATCH))
    assert partition.log.high_watermark == 0


@pytest.mark.parametrize(
    ("leader_epoch", "expected"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_fetch_of_a_replica_that_is_not_assigned_is_refused(broker, leader_epoch, expected):
    broker.lead()
    result = broker.replicate(9, 0, current_leader_epoch=leader_epoch)
    assert result.error_code is expected


def test_fetch_returns_the_high_watermark_from_before_it_moves_it(broker):
    partition = broker.lead(replicas=(1, 2), isr=(1, 2))
    append(partition)
    assert broker.replicate(2, 1).high_watermark == 0
    assert broker.replicate(2, 1).high_watermark == 1


def test_batch_larger_than_the_limit_is_left_out_unless_it_is_the_first(broker):
    partition = broker.lead(0, replicas=(1,), isr=(1,))
    append(partition)
    other = broker.lead(1, replicas=(1,), isr=(1,))
    append(other)
    (answer,) = broker.fetch(0, 1, max_bytes=len(BATCH) - 1)
    assert [answer[number].size_bytes for number in (0, 1)] == [len(BATCH), 0]


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "diverging"),
    [(2, 0, None), (3, 0, (0, 2)), (3, 4, None), (2, 3, (0, 2)), (4, 4, (4, 3))],
)
def test_diverging_epoch_is_the_last_common_epoch_and_its_end(broker, offset, last_fetched_epoch, diverging):
    """Epoch 0 has the offsets 0 and 1, epoch 4 has 2."""
    partition = broker.lead(replicas=(1,), isr=(1,))
    append(partition)
    append(partition)
    partition.make_leader(state(replicas=(1,), isr=(1,), leader_epoch=4, partition_epoch=1))
    append(partition)
    (answer,) = broker.fetch(offset=offset, last_fetched_epoch=last_fetched_epoch, max_wait_ms=0)
    assert answer[0].diverging_epoch == diverging
    assert answer[0].error_code is ErrorCode.NONE


def test_epoch_unknown_to_the_leader_is_out_of_range(broker):
    partition = broker.lead(replicas=(1,), isr=(1,))
    append(partition)
    (answer,) = broker.fetch(offset=1, last_fetched_epoch=7)
    assert answer[0].error_code is ErrorCode.OFFSET_OUT_OF_RANGE


# -- delete records -------------------------------------------------------------------------------


@pytest.fixture
def deletable(broker):
    """A partition with three replicated records."""
    partition = broker.lead()
    for _ in range(3):
        append(partition)
    for follower in (2, 3):
        broker.replicate(follower, 3, log_start_offset=0)
    return partition


def test_low_watermark_is_the_smallest_log_start_of_the_live_replicas(broker, deletable):
    assert deletable.delete_records_on_leader(2) == (2, 0)
    broker.replicate(2, 3, log_start_offset=2)
    assert deletable.low_watermark == 0
    broker.replicate(3, 3, log_start_offset=1)
    assert deletable.low_watermark == 1
    broker.set_broker(3, fenced=True)
    assert deletable.low_watermark == 2


@pytest.mark.parametrize(("asked", "requested"), [(-1, 3), (0, 0), (3, 3)])
def test_records_are_deleted_up_to_the_high_watermark(deletable, asked, requested):
    assert deletable.delete_records_on_leader(asked) == (requested, 0)
    assert deletable.log.log_start_offset == requested


@pytest.mark.parametrize("offset", [-2, 4])
def test_offset_outside_the_log_cannot_be_deleted(deletable, offset):
    refused = code_of(deletable.delete_records_on_leader, offset)
    assert refused is ErrorCode.OFFSET_OUT_OF_RANGE
    assert deletable.log.log_start_offset == 0


def test_records_of_a_compacted_topic_cannot_be_deleted(broker):
    partition = broker.lead(cleanup_policy=("compact",))
    assert code_of(partition.delete_records_on_leader, 0) is ErrorCode.POLICY_VIOLATION


def test_follower_deletes_no_records(broker):
    partition = broker.open()
    partition.make_follower(state(leader=2))
    refused = code_of(partition.delete_records_on_leader, 0)
    assert refused is ErrorCode.NOT_LEADER_OR_FOLLOWER
