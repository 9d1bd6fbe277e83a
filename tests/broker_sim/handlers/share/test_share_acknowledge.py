"""ShareAcknowledge: what is valid, how a session goes on and ends, and who may. See also share/partition/."""

import pytest

from broker_sim.errors import ErrorCode
from tests.broker_sim.handlers.share.conftest import VERSION
from tests.broker_sim.share.named_values import acquired

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
UNKNOWN_ID = b"x" * 16
INVALID = ErrorCode.INVALID_REQUEST


@pytest.fixture
def member(bench):
    """A member that has the records 0 to 4."""
    member = bench.member()
    bench.produce(5)
    assert member.fetched() == {0: [acquired(0, 4)]}
    return member


def owner(bench):
    """Return state and owner of the whole batch."""
    state = bench.share_partition().records.batches.first.batch_state
    return state.state.name, state.member_id


def test_acknowledgement_is_answered_when_it_is_written(bench, member):
    pending = bench.wait(member.acknowledge({0: [(0, 3, ACCEPT), (4, 4, REJECT)]}))
    response = pending.response
    assert (response.error_code, response.acquisition_lock_timeout_ms) == (0, 30_000)
    assert [partition.error_code for partition in response.responses[0].partitions] == [0]
    assert bench.share_partition().records.start_offset == 5
    assert bench.broker.share_partitions.acknowledged_records[ACCEPT] == 4
    assert bench.broker.share_partitions.acknowledged_records[REJECT] == 1


@pytest.mark.parametrize(
    "batches",
    [
        [(3, 2, ACCEPT)],
        [(0, 1)],
        [(0, 1, ACCEPT, ACCEPT, ACCEPT)],
        [(0, 1, 5)],
        [(0, 1, -1)],
        [(0, 1, RENEW)],
        [(0, 2, ACCEPT), (1, 3, ACCEPT)],
    ],
    ids=["reversed", "no type", "types", "unknown", "negative", "not said to renew", "overlap"],
)
def test_invalid_batch_changes_nothing(bench, member, batches):
    assert member.acknowledged({0: batches}) == {0: INVALID}
    assert owner(bench) == ("ACQUIRED", "member")


def test_renewal_needs_version_2(member):
    assert member.acknowledged({0: [(0, 4, RENEW)]}, is_renew_ack=True) == {0: 0}
    assert member.acknowledged({0: [(0, 4, RENEW)]}, version=VERSION - 1) == {0: INVALID}


def test_partitions_are_answered_each_for_itself(bench, member):
    """As in Kafka, one of which nothing is acknowledged is answered if something is of another."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert member.acknowledged({7: [(0, 0, ACCEPT)], 0: []}) == {7: unknown}
    assert member.acknowledged({7: [], 0: [(0, 0, ACCEPT)]}) == {7: unknown, 0: 0}
    assert member.acknowledged({0: []}) == {}
    bench.cluster.advance(0)


def test_topic_that_does_not_exist(member):
    error = {0: ErrorCode.UNKNOWN_TOPIC_ID}
    assert member.acknowledged({0: [(0, 0, ACCEPT)]}, topic_id=UNKNOWN_ID) == error


def test_share_partition_that_was_never_fetched(make_bench):
    bench = make_bench(partitions=2)
    member = bench.member(opens=False)
    bench.wait(member.fetch([0], max_wait_ms=100))
    pending = bench.wait(member.acknowledge({1: [(0, 0, ACCEPT)]}))
    partition = pending.response.responses[0].partitions[0]
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.error_message == "This server does not host this topic-partition."


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ErrorCode.INVALID_SHARE_SESSION_EPOCH), (7, ErrorCode.INVALID_SHARE_SESSION_EPOCH)]
)
def test_epoch_out_of_turn(bench, member, epoch, error):
    member.epoch = epoch
    pending = bench.wait(member.acknowledge({0: [(0, 4, ACCEPT)]}))
    assert pending.response.error_code == error
    assert owner(bench) == ("ACQUIRED", "member")


def test_last_acknowledgement_ends_the_session(bench, member):
    member.epoch = -1
    assert member.acknowledged({0: [(0, 1, ACCEPT)]}) == {0: 0}
    bench.cluster.advance(0)
    records = bench.share_partition().records
    assert (records.start_offset, records.next_fetch_offset()) == (2, 2)
    member.epoch = -1
    pending = bench.wait(member.acknowledge({}))
    assert pending.response.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_member_without_records_cannot_acknowledge_those_of_another(bench, member):
    other = bench.member("other")
    assert other.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: ErrorCode.INVALID_RECORD_STATE}
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: 0}


def test_share_coordinator_without_enough_replicas(make_bench):
    """The write is tried again and again; then the records are the member's again, if their lock lasts."""
    bench = make_bench(
        brokers=2,
        share_coordinator_state_topic_replication_factor="2",
        share_coordinator_state_topic_min_isr="2",
        group_configs={"share_record_lock_duration_ms": "60000"},
    )
    member = bench.member()
    bench.cluster.kill(2)
    bench.cluster.advance(20_000)
    bench.produce(5)
    assert member.fetched() == {0: [acquired(0, 4)]}
    pending = bench.wait(member.acknowledge({0: [(0, 4, ACCEPT)]}), 200_000)
    partition = pending.response.responses[0].partitions[0]
    assert partition.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert owner(bench) == ("ACQUIRED", "member")


def test_acknowledgement_that_kafka_does_not_expect_fails_the_request(bench, member):
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: 0}
    pending = bench.wait(member.acknowledge({0: [(4, 5, ACCEPT)]}))
    assert pending.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert pending.response.responses == []


def test_invalid_group_or_member(bench):
    for group, member_id in ((None, "member"), ("share", "")):
        member = bench.member(member_id, group, opens=False)
        pending = bench.wait(member.acknowledge({0: [(0, 0, ACCEPT)]}))
        assert pending.response.error_code == INVALID
