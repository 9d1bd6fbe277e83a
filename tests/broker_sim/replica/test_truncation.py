"""Where a follower cuts its log, by its epochs and the end of the leader's epoch."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.log import PartitionLog
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.replica.fetcher import truncation_offset


@pytest.fixture
def log():
    """A log with three records of epoch 1, four of epoch 3, and one of epoch 5."""
    log = PartitionLog(TopicPartition("t", 0), TopicConfig(), VirtualClock())
    for epoch, count in ((1, 3), (3, 4), (5, 1)):
        log.append_as_leader(build_batch([b"v"] * count), epoch)
    return log


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end_offset", "offset"),
    [
        (5, 8, 8),  # the same
        (5, 7, 7),  # what the former leader wrote alone goes
        (5, 20, 8),  # the follower is behind
        (3, 5, 5),  # the leader's epoch ended before the follower's
        (3, 7, 7),
        (3, 20, 7),  # the follower's epoch ended before the leader's
        (1, 2, 2),
    ],
)
def test_epoch_that_both_know_ends_where_it_ends_first(log, leader_epoch, leader_end_offset, offset):
    assert truncation_offset(log, leader_epoch, leader_end_offset) == offset


@pytest.mark.parametrize(("leader_epoch", "offset"), [(2, 3), (4, 7)])
def test_epoch_that_the_follower_does_not_know_leaves_those_before_it(log, leader_epoch, offset):
    assert truncation_offset(log, leader_epoch, 8) == offset


@pytest.mark.parametrize(("leader_end_offset", "offset"), [(4, 4), (20, 8)])
@pytest.mark.parametrize("leader_epoch", [-1, 6])
def test_without_a_known_epoch_the_leaders_end_counts(log, leader_epoch, leader_end_offset, offset):
    assert truncation_offset(log, leader_epoch, leader_end_offset) == offset


def test_epoch_before_all_of_the_followers_leaves_nothing_of_them(log):
    assert truncation_offset(log, 0, 2) == 0
