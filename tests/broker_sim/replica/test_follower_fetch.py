"""Fetches of followers at their leader, through the replica server."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.replica import INITIAL_EPOCH, FetchIsolation, FetchParams, FetchPartition, FollowerFetch

LEADER, FOLLOWER, STRANGER = 1, 2, 9


@pytest.fixture
def fetch_as(bench):
    """Fetch from the leader as a replica; return the result of the partition."""

    def fetch(replica_id, offset=0, replica_epoch=-1, leader_epoch=-1, log_start_offset=0):
        results = []
        params = FetchParams(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1_000_000,
            isolation=FetchIsolation.LOG_END,
            replica_id=replica_id,
            replica_epoch=replica_epoch,
        )
        fetch = FetchPartition(
            fetch_offset=offset, max_bytes=1_000, log_start_offset=log_start_offset, current_leader_epoch=leader_epoch
        )
        to_send = [(bench.partition().topic_partition, fetch)]
        bench.cluster.nodes.brokers[LEADER].replica_server.serve_fetch(
            FollowerFetch(params, INITIAL_EPOCH, to_send), results.extend
        )
        ((_, data),) = results
        return data

    return fetch


def broker_epoch(bench, broker_id):
    return bench.cluster.nodes.controller.image.brokers[broker_id].epoch


def test_fetch_with_an_old_broker_epoch_is_refused_and_changes_nothing(bench, fetch_as):
    bench.produced()
    bench.cluster.pause(FOLLOWER)
    bench.produced(acks=1)
    stale = fetch_as(FOLLOWER, 2, broker_epoch(bench, FOLLOWER) - 1)
    assert stale.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.partition().replica_states.followers[FOLLOWER].log_end_offset == 1
    current = fetch_as(FOLLOWER, 2, broker_epoch(bench, FOLLOWER))
    assert current.error_code == ErrorCode.NONE
    assert bench.partition().replica_states.followers[FOLLOWER].log_end_offset == 2


def test_fetch_without_a_broker_epoch_is_accepted(bench, fetch_as):
    assert fetch_as(FOLLOWER).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("leader_epoch", "error"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_fetch_of_a_replica_that_is_not_assigned_is_refused(bench, fetch_as, leader_epoch, error):
    assert fetch_as(STRANGER, leader_epoch=leader_epoch).error_code == error


def test_follower_gets_the_high_watermark_from_before_its_fetch(bench, fetch_as):
    bench.produced()
    bench.cluster.pause(FOLLOWER)
    bench.produced(acks=1)
    bench.settle()
    assert fetch_as(FOLLOWER, 2).high_watermark == 1
    assert fetch_as(FOLLOWER, 2).high_watermark == 2
