"""The offset that a follower truncates its log to, by its epochs and the leader's epoch end offset."""

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
        (5, 7, 7),  # records that only the former leader has are removed
        (5, 20, 8),  # the follower is behind
        (3, 5, 5),  # the leader's epoch ended before the follower's
        (3, 7, 7),
        (3, 20, 7),  # the follower's epoch ended before the leader's
        (1, 2, 2),
    ],
)
def test_common_epoch_is_truncated_to_its_smaller_end_offset(log, leader_epoch, leader_end_offset, offset):
    assert truncation_offset(log, leader_epoch, leader_end_offset) == offset


@pytest.mark.parametrize(("leader_epoch", "offset"), [(2, 3), (4, 7)])
def test_epoch_unknown_to_the_follower_leaves_the_earlier_epochs(log, leader_epoch, offset):
    assert truncation_offset(log, leader_epoch, 8) == offset


@pytest.mark.parametrize(("leader_end_offset", "offset"), [(4, 4), (20, 8)])
@pytest.mark.parametrize("leader_epoch", [-1, 6])
def test_without_a_known_epoch_the_leaders_end_offset_counts(log, leader_epoch, leader_end_offset, offset):
    assert truncation_offset(log, leader_epoch, leader_end_offset) == offset


def test_epoch_before_all_epochs_of_the_follower_leaves_none_of_them(log):
    assert truncation_offset(log, 0, 2) == 0
