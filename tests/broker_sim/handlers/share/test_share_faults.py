"""Injected faults of share fetches and acknowledgements."""

import pytest

from broker_sim import Fault
from broker_sim.errors import ErrorCode
from tests.broker_sim.handlers.share.conftest import TOPIC, WAIT_MS, acquisitions, answers
from tests.broker_sim.share.named_values import acquired

ACCEPT = 1
NONE, BROKEN = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def bench(make_bench):
    return make_bench(2)


@pytest.fixture
def member(bench):
    """A member whose session has both partitions."""
    return bench.member()


def break_it(bench, api, **fields):
    return bench.cluster.inject(Fault(api=api, error="KAFKA_STORAGE_ERROR", **fields))


def test_error_answers_its_partition_of_the_session_and_ends_the_wait(bench, member):
    fault = break_it(bench, "ShareFetch", topic=TOPIC, partition=1, count=1)
    asked_ms = bench.cluster.now_ms
    pending = bench.wait(member.fetch())
    assert {number: answer.error_code for number, answer in answers(pending).items()} == {1: BROKEN}
    assert bench.cluster.now_ms - asked_ms < WAIT_MS
    assert (pending.response.error_code, fault.hits) == (NONE, 1)


def test_partition_beside_a_broken_one_is_fetched(bench, member):
    bench.produce(2, 0)
    bench.produce(2, 1)
    break_it(bench, "ShareFetch", topic=TOPIC, partition=1)
    pending = bench.wait(member.fetch())
    assert acquisitions(pending) == {0: [acquired(0, 1)]}
    assert answers(pending)[1].error_code == BROKEN
    assert bench.share_partition(1).records.start_offset == 0


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
def test_broken_acknowledgement_changes_nothing(bench, member, api):
    bench.produce(2, 0)
    bench.produce(2, 1)
    assert member.fetched() == {0: [acquired(0, 1)], 1: [acquired(0, 1)]}
    break_it(bench, api, topic=TOPIC, partition=1)
    acknowledges = {0: [(0, 1, ACCEPT)], 1: [(0, 1, ACCEPT)]}
    if api == "ShareAcknowledge":
        codes = member.acknowledged(acknowledges)
    else:
        told = answers(bench.wait(member.fetch(acknowledges=acknowledges)))
        codes = {number: answer.acknowledge_error_code for number, answer in told.items()}
    assert codes == {0: NONE, 1: BROKEN}
    starts = [bench.share_partition(number).records.start_offset for number in (0, 1)]
    assert starts == [2, 0]


def test_acknowledgement_error_does_not_stop_the_fetch_of_the_partition(bench, member):
    bench.produce(2)
    assert member.fetched() == {0: [acquired(0, 1)]}
    bench.produce(1)
    fault = bench.cluster.inject(Fault(api="ShareFetch", error="INVALID_RECORD_STATE"))
    told = answers(bench.wait(member.fetch(acknowledges={0: [(0, 1, ACCEPT)]})))[0]
    assert (told.error_code, told.acknowledge_error_code) == (NONE, ErrorCode.INVALID_RECORD_STATE)
    assert fault.hits == 1


def test_throttled_member_gets_nothing_and_keeps_its_session(bench, member):
    bench.produce(2)
    bench.cluster.inject(Fault(api="ShareFetch", throttle_ms=3_000, count=1))
    pending = bench.wait(member.fetch())
    assert (pending.response.throttle_time_ms, answers(pending)) == (3_000, {})
    asked_ms = bench.cluster.now_ms
    # The records stay with the member; they are given again when their lock ends.
    assert member.fetched() == {}
    assert bench.cluster.now_ms - asked_ms >= 3_000
    bench.cluster.advance(30_000)
    assert member.fetched() == {0: [acquired(0, 1, deliveries=2)]}
