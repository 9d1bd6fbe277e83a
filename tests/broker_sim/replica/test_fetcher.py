"""A follower's fetcher; the test answers for the leader."""

from math import ceil

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.quota import ReplicationQuotas
from broker_sim.replica import FetchPartitionData
from broker_sim.replica.fetcher import ReplicaFetcher

LEADER, FOLLOWER = 1, 2
PARTITION = TopicPartition("topic", 0)
BACKOFF_MS = 1_000
SOCKET_TIMEOUT_MS = 30_000


class ScriptedLeader:
    """Records the requests; the test answers them."""

    def __init__(self):
        self.fetches = []
        self.bounds = []

    def fetch(self, leader_id, request, on_response, on_failure):
        self.fetches.append((request, on_response, on_failure))

    def fetch_log_bounds(self, leader_id, topic_partition, epoch, on_response, on_failure):
        self.bounds.append(on_response)

    @property
    def fetch_offset(self):
        ((_, fetch),) = self.fetches[-1][0].to_send
        return fetch.fetch_offset

    def answer(self, *data, number=-1, **fields):
        _, on_response, _ = self.fetches[number]
        on_response([(PARTITION, FetchPartitionData(*data, **fields))])

    def sent(self):
        """Return each request's epoch, its fetch offsets, and its number of forgotten partitions."""
        return [
            (request.epoch, [fetch.fetch_offset for _, fetch in request.to_send], len(request.to_forget))
            for request, _, _ in self.fetches
        ]


@pytest.fixture
def leader():
    return ScriptedLeader()


@pytest.fixture
def epochs():
    """The broker epochs of the follower; the last one counts."""
    return [1]


@pytest.fixture
def bench(make_bench):
    return make_bench(partitions=2)


@pytest.fixture
def quotas(bench):
    """Quotas of replication under which partition 0 is throttled; there is no limit yet."""
    clock = bench.cluster.nodes.brokers[FOLLOWER].clock
    return ReplicationQuotas(
        BrokerConfig(), clock, FOLLOWER, lambda _: {"follower.replication.throttled.replicas": "0:2"}
    )


@pytest.fixture
def follower(bench, leader, epochs, quotas):
    """A fetcher of a follower's partition with two records; its real leader is paused."""
    for _ in range(2):
        bench.produced()
    bench.cluster.advance(600)
    bench.cluster.pause(LEADER)
    broker = bench.cluster.nodes.brokers[FOLLOWER]
    fetcher = ReplicaFetcher(
        LEADER,
        broker.process,
        broker.config,
        leader,
        replica_id=FOLLOWER,
        broker_epoch=lambda: epochs[-1],
        complete_delayed_fetches=lambda _: None,
        quota=quotas.follower,
    )
    fetcher.add(bench.partition(FOLLOWER))
    bench.settle()
    assert (len(leader.fetches), leader.fetch_offset) == (1, 2)
    return fetcher


def records(offset):
    batch = bytearray(build_batch([b"value"]))
    batch[:8] = offset.to_bytes(8, "big")
    return bytes(batch)


def test_records_are_appended_and_the_next_fetch_begins_after_them(bench, leader, follower):
    batch = records(2)
    leader.answer(ErrorCode.NONE, 3, 3, 0, (batch,), len(batch))
    assert (len(leader.fetches), leader.fetch_offset) == (2, 3)
    assert bench.partition(FOLLOWER).log.high_watermark == 3


def test_fetch_lists_an_unchanged_partition_only_once(bench, leader, follower):
    leader.answer(ErrorCode.NONE, 2, 2, 0)
    leader.fetches[-1][1]([])
    batch = records(2)
    leader.answer(ErrorCode.NONE, 3, 3, 0, (batch,), len(batch))
    assert leader.sent() == [(0, [2], 0), (1, [], 0), (2, [], 0), (3, [3], 0)]


def test_partition_leaves_the_session_during_its_backoff(bench, leader, follower):
    follower.add(bench.partition(FOLLOWER, 1))
    leader.answer(ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1, -1)
    assert leader.sent()[1:] == [(1, [0], 1)]
    bench.cluster.advance(BACKOFF_MS)
    leader.fetches[-1][1]([])
    assert leader.sent()[2:] == [(2, [2], 0)]


def test_removed_partition_leaves_the_session(bench, leader, follower):
    follower.add(bench.partition(FOLLOWER, 1))
    follower.remove(PARTITION)
    leader.fetches[-1][1]([])
    assert leader.sent()[1:] == [(1, [0], 1)]


def test_session_unknown_to_the_leader_begins_again(bench, leader, follower):
    leader.answer(ErrorCode.NONE, 2, 2, 0)
    leader.fetches[-1][1](None)
    assert leader.sent() == [(0, [2], 0), (1, [], 0), (0, [2], 0)]


def test_failed_fetch_ends_the_session(bench, leader, follower):
    leader.answer(ErrorCode.NONE, 2, 2, 0)
    leader.fetches[-1][2]()
    bench.cluster.advance(BACKOFF_MS)
    assert leader.sent()[2:] == [(0, [2], 0)]


def test_new_broker_epoch_begins_a_session(bench, leader, follower, epochs):
    leader.answer(ErrorCode.NONE, 2, 2, 0)
    epochs.append(2)
    leader.fetches[-1][1]([])
    assert leader.sent()[2:] == [(0, [2], 0)]
    assert leader.fetches[-1][0].params.replica_epoch == 2


def test_fetch_sends_a_log_start_that_the_follower_moved_itself(bench, leader, follower):
    data = FetchPartitionData(ErrorCode.NONE, 2, 2, 0)
    for log_start_offset in (0, 0, 1):
        bench.partition(FOLLOWER).log.offsets.maybe_increment_log_start_offset(log_start_offset)
        leader.fetches[-1][1]([(PARTITION, data)])
    ((_, fetch),) = leader.fetches[-1][0].to_send
    assert fetch.log_start_offset == 1


def test_log_start_moved_by_retention_is_sent_after_the_maximum_fetch_wait(bench, leader, follower):
    bench.partition(FOLLOWER).log.offsets.maybe_increment_log_start_offset(1)
    bench.cluster.advance(499)
    leader.fetches[-1][1]([])
    assert not leader.fetches[-1][0].to_send
    bench.cluster.advance(1)
    leader.fetches[-1][1]([])
    ((_, fetch),) = leader.fetches[-1][0].to_send
    assert (fetch.fetch_offset, fetch.log_start_offset) == (2, 1)


def test_unmoved_log_starts_are_not_checked(bench, leader, follower):
    # A check of all partitions would find this change, which was not reported.
    bench.partition(FOLLOWER).log.offsets.log_start_offset = 1
    bench.cluster.advance(500)
    leader.fetches[-1][1]([])
    assert not leader.fetches[-1][0].to_send


def test_records_that_cannot_be_appended_are_fetched_again_after_the_backoff(bench, leader, follower):
    broken = records(2)[:-1] + b"?"
    leader.answer(ErrorCode.NONE, 3, 3, 0, (broken,), len(broken))
    bench.cluster.advance(BACKOFF_MS - 1)
    assert len(leader.fetches) == 1
    bench.cluster.advance(1)
    assert (len(leader.fetches), leader.fetch_offset) == (2, 2)


def test_log_start_beyond_the_followers_log_delays_the_partition_by_the_backoff(bench, leader, follower):
    leader.answer(ErrorCode.NONE, 9, 9, 9)
    bench.cluster.advance(BACKOFF_MS)
    assert len(leader.fetches) == 2


def test_error_delays_the_partition_by_the_backoff(bench, leader, follower):
    leader.answer(ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1, -1)
    bench.cluster.advance(BACKOFF_MS - 1)
    assert len(leader.fetches) == 1
    bench.cluster.advance(1)
    assert len(leader.fetches) == 2


def test_fenced_partition_is_not_fetched_until_new_metadata_adds_it(bench, leader, follower):
    leader.answer(ErrorCode.FENCED_LEADER_EPOCH, -1, -1, -1)
    bench.cluster.advance(5 * BACKOFF_MS)
    assert (len(leader.fetches), len(follower)) == (1, 0)


def test_unanswered_fetch_times_out_and_a_late_response_is_ignored(bench, leader, follower):
    bench.cluster.advance(SOCKET_TIMEOUT_MS - 1)
    assert len(leader.fetches) == 1
    bench.cluster.advance(1 + BACKOFF_MS)
    assert len(leader.fetches) == 2
    late = records(2)
    leader.answer(ErrorCode.NONE, 3, 3, 0, (late,), len(late), number=0)
    assert bench.partition(FOLLOWER).log.log_end_offset == 2
    assert len(leader.fetches) == 2


def test_each_fetch_has_the_whole_timeout_for_its_response(bench, leader, follower):
    bench.cluster.advance(10_000)
    leader.answer(ErrorCode.NONE, 2, 2, 0, (), 0)
    assert len(leader.fetches) == 2
    bench.cluster.advance(SOCKET_TIMEOUT_MS - 1 + BACKOFF_MS)
    assert len(leader.fetches) == 2
    bench.cluster.advance(1)
    assert len(leader.fetches) == 3


def test_fetch_beyond_the_leaders_end_truncates_the_follower(bench, leader, follower):
    leader.answer(ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1)
    leader.bounds[0](ErrorCode.NONE, 0, 1)
    assert bench.partition(FOLLOWER).log.log_end_offset == 1
    assert leader.fetch_offset == 1


def test_fetch_before_the_leaders_start_restarts_the_log_there(bench, leader, follower):
    leader.answer(ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1)
    leader.bounds[0](ErrorCode.NONE, 7, 9)
    log = bench.partition(FOLLOWER).log
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    assert leader.fetch_offset == 7


def test_log_bounds_received_after_the_backoff_are_used_by_the_next_fetch(bench, leader, follower):
    leader.answer(ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1)
    bench.cluster.advance(BACKOFF_MS)
    assert (len(leader.fetches), leader.fetch_offset) == (2, 2)
    leader.bounds[0](ErrorCode.NONE, 0, 1)
    leader.answer(ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1)
    assert (len(leader.fetches), leader.fetch_offset) == (3, 1)


def test_diverging_epoch_truncates_the_follower_to_its_end(bench, leader, follower):
    leader.answer(ErrorCode.NONE, 1, 1, 0, diverging_epoch=(0, 1))
    assert bench.partition(FOLLOWER).log.log_end_offset == 1
    assert leader.fetch_offset == 1


# -- quotas -------------------------------------------------------------------------------------------


def limit(quotas, batch, seconds):
    """Set a limit that one such batch uses up for the given number of seconds."""
    rate = ceil(len(batch) / seconds)
    quotas.reconfigure({"follower.replication.throttled.rate": str(rate)})


def test_partition_that_lags_is_not_fetched_above_the_quota(bench, leader, follower, quotas):
    batch = records(2)
    limit(quotas, batch, seconds=2)
    leader.answer(ErrorCode.NONE, 9, 9, 0, (batch,), len(batch))
    bench.cluster.advance(2 * BACKOFF_MS - 1)
    assert len(leader.fetches) == 1
    bench.cluster.advance(BACKOFF_MS)
    assert (len(leader.fetches), leader.fetch_offset) == (2, 3)


def test_in_sync_partition_is_fetched_above_the_quota_and_counts_toward_it(bench, leader, follower, quotas):
    batch = records(2)
    limit(quotas, batch, seconds=2)
    leader.answer(ErrorCode.NONE, 3, 3, 0, (batch,), len(batch))
    assert quotas.follower.is_quota_exceeded()
    assert (len(leader.fetches), leader.fetch_offset) == (2, 3)


def test_other_partitions_are_fetched_without_the_throttled_one(bench, leader, follower, quotas):
    batch = records(2)
    limit(quotas, batch, seconds=1)
    leader.answer(ErrorCode.NONE, 2, 2, 0)
    follower.add(bench.partition(FOLLOWER, 1))
    leader.answer(ErrorCode.NONE, 9, 9, 0, (batch,), len(batch))
    assert leader.sent()[2:] == [(2, [0, 3], 0)]
    more = records(3)
    leader.answer(ErrorCode.NONE, 9, 9, 0, (more,), len(more))
    assert leader.sent()[3:] == [(3, [], 1)]
    bench.cluster.advance(1_000)
    leader.fetches[-1][1]([])
    assert leader.sent()[4:] == [(4, [], 0)]
    bench.cluster.advance(1_000)
    leader.fetches[-1][1]([])
    assert leader.sent()[5:] == [(5, [4], 0)]


def test_partition_without_a_response_so_far_is_not_in_sync(bench, leader, follower, quotas):
    limit(quotas, b"1", seconds=1)
    quotas.follower.record(2)
    follower.add(bench.partition(FOLLOWER))
    leader.fetches[-1][1]([])
    assert len(leader.fetches) == 1
    bench.cluster.advance(2 * BACKOFF_MS)
    assert len(leader.fetches) == 2
