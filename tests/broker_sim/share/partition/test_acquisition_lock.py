"""Acquisition locks expire in virtual time, to the millisecond."""

import pytest

from broker_sim.errors import ErrorCode
from tests.broker_sim.share.named_values import ARCHIVED, AVAILABLE, Offsets, Written, standing, state_batch
from tests.broker_sim.share.partition.conftest import KEY, MEMBER

LOCK_MS = 30_000
ACCEPT, RELEASE, RENEW = 1, 2, 4


def test_records_become_available_when_their_lock_expires(bench):
    bench.acquire((0, 4))
    bench.timer.advance(LOCK_MS - 1)
    assert bench.states == {(0, 4): standing("ACQUIRED", member=MEMBER)}
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=5)
    assert bench.woken == []
    bench.timer.advance(1)
    assert bench.states == {(0, 4): standing("AVAILABLE")}
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=0)
    assert bench.last_written == Written(0, [state_batch(0, 4, AVAILABLE)])
    assert bench.woken == [KEY]
    assert bench.partition.lock_timeouts == 5
    bench.timer.advance(LOCK_MS)
    assert len(bench.coordinator.written) == 1


def test_group_config_sets_the_lock_duration(bench):
    bench.configs["share.record.lock.duration.ms"] = "15000"
    bench.acquire((0, 4))
    bench.timer.advance(14_999)
    assert bench.states == {(0, 4): standing("ACQUIRED", member=MEMBER)}
    bench.timer.advance(1)
    assert bench.states == {(0, 4): standing("AVAILABLE")}


def test_acknowledged_records_have_no_lock(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, ACCEPT)
    assert bench.timer.size() == 0


def test_split_batch_keeps_the_expiry_time_of_its_lock(bench):
    bench.acquire((0, 4))
    bench.timer.advance(10_000)
    assert bench.acknowledge(1, 2, ACCEPT) is None
    assert bench.timer.size() == 2
    bench.timer.advance(LOCK_MS - 10_001)
    assert bench.states[3, 3] == standing("ACQUIRED", member=MEMBER)
    bench.timer.advance(1)
    assert [state for state, *_ in bench.states.values()] == [
        "AVAILABLE", "ACKNOWLEDGED", "ACKNOWLEDGED", "AVAILABLE", "AVAILABLE",
    ]  # fmt: skip
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=0)


def test_lock_expiry_of_the_last_delivery_archives_the_record(bench):
    bench.configs["share.delivery.count.limit"] = "2"
    for deliveries in (1, 2):
        assert bench.acquire((0, 0), at=0) == [(0, 0, deliveries)]
        bench.timer.advance(LOCK_MS)
    assert bench.last_written == Written(0, [state_batch(0, 0, ARCHIVED, deliveries=2)])
    assert bench.states == {}
    assert bench.offsets == Offsets(start=1, end=1, next_fetch=1)


def test_renewal_restarts_the_lock(bench):
    bench.acquire((0, 4))
    bench.timer.advance(LOCK_MS - 1)
    assert bench.acknowledge(0, 4, RENEW) is None
    bench.timer.advance(LOCK_MS - 1)
    assert bench.states == {(0, 4): standing("ACQUIRED", member=MEMBER)}
    bench.timer.advance(1)
    assert bench.states == {(0, 4): standing("AVAILABLE")}
    assert len(bench.coordinator.written) == 1


def test_part_of_a_batch_can_be_renewed(bench):
    bench.acquire((0, 2))
    bench.timer.advance(LOCK_MS - 1)
    assert bench.acknowledge(0, 2, ACCEPT, RENEW, RELEASE) is None
    bench.timer.advance(LOCK_MS - 1)
    assert bench.states == {
        (0, 0): standing("ACKNOWLEDGED"),
        (1, 1): standing("ACQUIRED", member=MEMBER),
        (2, 2): standing("AVAILABLE"),
    }
    bench.timer.advance(1)
    assert bench.states[1, 1] == standing("AVAILABLE")


def test_group_config_can_disable_renewal(bench):
    bench.configs["share.renew.acknowledge.enable"] = "false"
    bench.acquire((0, 4))
    assert bench.acknowledge(0, 4, RENEW) == ErrorCode.INVALID_RECORD_STATE
    assert bench.acknowledge(1, 1, RENEW) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize("is_late", [False, True])
def test_failed_write_returns_records_to_the_member_only_within_lock(bench, is_late):
    bench.acquire((0, 4))
    bench.timer.advance(LOCK_MS - 1)
    bench.coordinator.is_held = True
    assert bench.acknowledge(0, 4, ACCEPT) == "pending"
    bench.timer.advance(1 if is_late else 0)
    bench.coordinator.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    owner = standing("AVAILABLE") if is_late else standing("ACQUIRED", member=MEMBER)
    assert bench.states == {(0, 4): owner}
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=0 if is_late else 5)
    assert bench.records.delivery_complete_count == 0


def test_lock_expiry_during_a_successful_write_changes_nothing(bench):
    bench.acquire((0, 4))
    bench.coordinator.is_held = True
    bench.acknowledge(0, 4, ACCEPT)
    bench.timer.advance(LOCK_MS)
    bench.coordinator.release()
    assert bench.states == {}
    assert bench.offsets == Offsets(start=5, end=5, next_fetch=5)
    assert len(bench.coordinator.written) == 1


def test_lock_expiry_takes_effect_even_if_the_write_fails(bench):
    bench.acquire((0, 4))
    bench.coordinator.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.timer.advance(LOCK_MS)
    assert bench.states == {(0, 4): standing("AVAILABLE")}
    assert bench.woken == [KEY]
