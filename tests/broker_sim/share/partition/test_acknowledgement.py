"""How members acknowledge their acquired records, and how acknowledgements are written and rolled back."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.share.partition.acknowledgement import AcknowledgementBatch, ChangeCount, FailedRequestError
from tests.broker_sim.share.named_values import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    Offsets,
    Written,
    acquired,
    standing,
    state_batch,
)
from tests.broker_sim.share.partition.conftest import KEY, MEMBER, code_of

GAP, ACCEPT, RELEASE, REJECT = range(4)
STATES = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}
OTHER = "other"


@pytest.mark.parametrize("type_", [GAP, ACCEPT, REJECT])
def test_completed_batch_advances_the_start_offset(bench, type_):
    bench.acquire((0, 4))
    assert bench.acknowledge(0, 4, type_) is None
    assert bench.last_written == Written(0, [state_batch(0, 4, STATES[type_])])
    assert bench.states == {}
    assert bench.offsets == Offsets(start=5, end=5, next_fetch=5)
    assert bench.woken == [KEY]


def test_released_batch_is_available(bench):
    bench.acquire((0, 4))
    assert bench.acknowledge(0, 4, RELEASE) is None
    assert bench.last_written == Written(0, [state_batch(0, 4, AVAILABLE)])
    assert bench.states == {(0, 4): standing("AVAILABLE")}
    assert bench.woken == []


def test_each_record_can_have_its_own_type(bench):
    bench.acquire((0, 4))
    assert bench.acknowledge(0, 4, ACCEPT, REJECT, RELEASE, GAP, ACCEPT) is None
    written = [
        state_batch(0, 0, ACKNOWLEDGED),
        state_batch(1, 1, ARCHIVED),
        state_batch(2, 2, AVAILABLE),
        state_batch(3, 3, ARCHIVED),
        state_batch(4, 4, ACKNOWLEDGED),
    ]
    assert bench.last_written == Written(0, written)
    assert bench.offsets == Offsets(start=2, end=4, next_fetch=2)
    assert bench.records.delivery_complete_count == 2
    assert bench.acquire((0, 4)) == [acquired(2, 2, deliveries=2)]
    assert bench.acknowledge(2, 2, ACCEPT) is None
    assert bench.last_written == Written(2, [state_batch(2, 2, ACKNOWLEDGED, deliveries=2)])
    assert bench.offsets == Offsets(start=5, end=5, next_fetch=5)
    assert bench.records.delivery_complete_count == 0


def test_start_offset_stays_until_the_first_record_is_completed(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9))
    bench.acknowledge(5, 9, ACCEPT)
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=10)
    assert bench.records.delivery_complete_count == 5
    bench.acknowledge(0, 4, ACCEPT)
    assert bench.offsets == Offsets(start=10, end=10, next_fetch=10)


def test_only_completed_batches_are_removed(bench):
    for batch in ((0, 4), (5, 9), (10, 14)):
        bench.acquire(batch)
    bench.acknowledge(0, 6, ACCEPT)
    assert bench.offsets == Offsets(start=7, end=14, next_fetch=15)
    assert min(bench.states) == (5, 5)
    bench.acknowledge(7, 9, ACCEPT)
    assert bench.offsets == Offsets(start=10, end=14, next_fetch=15)
    assert list(bench.states) == [(10, 14)]


def test_acknowledgement_can_span_several_batches(bench):
    for batch in ((0, 4), (5, 9), (10, 14)):
        bench.acquire(batch)
    assert bench.acknowledge(3, 11, ACCEPT) is None
    assert bench.last_written == Written(0, [state_batch(3, 11, ACKNOWLEDGED)])
    assert bench.states[2, 2] == standing("ACQUIRED", member=MEMBER)
    assert bench.states[5, 9] == standing("ACKNOWLEDGED")
    assert bench.states[12, 12] == standing("ACQUIRED", member=MEMBER)


def test_records_of_other_members_cannot_be_acknowledged(bench):
    bench.acquire((0, 4), member=OTHER)
    assert bench.acknowledge(0, 4, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert bench.acknowledge(2, 3, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    bench.acknowledge(1, 1, RELEASE, member=OTHER)
    assert bench.acknowledge(2, 2, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert len(bench.coordinator.written) == 1


def test_records_that_are_not_acquired_cannot_be_acknowledged(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, RELEASE)
    assert bench.acknowledge(0, 4, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    bench.acquire((0, 4))
    bench.acknowledge(2, 2, RELEASE)
    assert bench.acknowledge(2, 2, ACCEPT) == ErrorCode.INVALID_RECORD_STATE


def test_offsets_that_were_never_in_flight_are_rejected(make_bench):
    bench = make_bench().open(start_offset=10)
    assert bench.acknowledge(10, 14, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    bench.acquire((10, 14))
    assert bench.acknowledge(15, 19, ACCEPT) == ErrorCode.INVALID_REQUEST
    assert bench.acknowledge(10, 19, ACCEPT) == ErrorCode.INVALID_REQUEST
    assert bench.states == {(10, 14): standing("ACQUIRED", member=MEMBER)}


def test_acknowledgement_before_the_start_offset_succeeds_without_a_write(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, ACCEPT)
    assert bench.acknowledge(0, 4, ACCEPT) is None
    assert len(bench.coordinator.written) == 1


def test_request_with_one_error_is_rolled_back_as_a_whole(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9), member=OTHER)
    batches = [AcknowledgementBatch(0, 4, [ACCEPT]), AcknowledgementBatch(5, 9, [ACCEPT])]
    result = bench.result(bench.partition.acknowledge, MEMBER, batches, ChangeCount())
    assert code_of(result) == ErrorCode.INVALID_RECORD_STATE
    assert str(result) == "Member is not the owner of batch record"
    assert bench.states[0, 4] == standing("ACQUIRED", member=MEMBER)
    assert bench.records.delivery_complete_count == 0
    assert bench.coordinator.written == []
    assert bench.acknowledge(0, 4, ACCEPT) is None


def test_acknowledgement_takes_effect_once_written(bench):
    bench.acquire((0, 4))
    bench.coordinator.is_held = True
    assert bench.acknowledge(0, 4, ACCEPT) == "pending"
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=5)
    assert bench.woken == []
    assert bench.acknowledge(0, 4, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    bench.coordinator.release()
    assert bench.offsets == Offsets(start=5, end=5, next_fetch=5)
    assert bench.woken == [KEY]


@pytest.mark.parametrize(
    ("coordinator_error", "error"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_failed_write_is_rolled_back(bench, coordinator_error, error):
    bench.acquire((0, 4))
    bench.coordinator.fails_with = coordinator_error
    assert bench.acknowledge(0, 4, ACCEPT) == error
    assert bench.states == {(0, 4): standing("ACQUIRED", member=MEMBER)}
    assert bench.records.delivery_complete_count == 0
    bench.coordinator.fails_with = ErrorCode.NONE
    assert bench.acknowledge(0, 4, ACCEPT) is None


def test_start_offset_stops_at_records_being_written(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9))
    bench.coordinator.is_held = True
    assert bench.acknowledge(5, 9, ACCEPT) == "pending"
    bench.coordinator.is_held = False
    assert bench.acknowledge(0, 4, ACCEPT) is None
    assert bench.offsets == Offsets(start=5, end=9, next_fetch=10)
    bench.coordinator.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.states == {(5, 9): standing("ACQUIRED", member=MEMBER)}
    assert bench.acknowledge(5, 9, ACCEPT) is None
    assert bench.offsets == Offsets(start=10, end=10, next_fetch=10)


def test_range_around_the_start_offset_fails_if_nothing_is_in_flight(make_bench):
    """As in Kafka, which finds no batch there and fails with an internal error."""
    bench = make_bench().open(start_offset=10)
    with pytest.raises(FailedRequestError):
        bench.acknowledge(8, 12, ACCEPT)


def test_end_of_session_releases_the_members_records(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9), member=OTHER)
    bench.acquire((10, 14))
    bench.acknowledge(11, 11, ACCEPT)
    assert bench.release() is None
    assert bench.last_written == Written(
        0, [state_batch(0, 4, AVAILABLE), state_batch(10, 10, AVAILABLE), state_batch(12, 14, AVAILABLE)]
    )
    assert bench.states[5, 9] == standing("ACQUIRED", member=OTHER)
    assert bench.offsets == Offsets(start=0, end=14, next_fetch=0)


def test_end_of_session_of_a_member_without_records_writes_nothing(bench):
    bench.acquire((0, 4))
    assert bench.release(OTHER) is None
    assert bench.coordinator.written == []


def test_release_at_the_delivery_limit_archives_the_records(bench):
    bench.configs["share.delivery.count.limit"] = "2"
    bench.acquire((0, 4))
    bench.release()
    bench.acquire((0, 4))
    assert bench.release() is None
    assert bench.last_written == Written(0, [state_batch(0, 4, ARCHIVED, deliveries=2)])
    assert bench.offsets == Offsets(start=5, end=5, next_fetch=5)
