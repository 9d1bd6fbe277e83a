"""When a log is brought to the disk: `flush.messages`, `flush.ms`, and the checkpoint of how far it is."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig, TopicConfig
from broker_sim.log import LogDirectory, LogManager
from broker_sim.log.storage.checkpoint_files import read_offsets
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

KEY = TopicPartition("topic", 0)
BATCH = build_batch([Record(b"value", timestamp=1_000_000)])
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@pytest.fixture
def clock():
    return VirtualClock(wall_start_ms=1_000_000)


@pytest.fixture
def logs(tmp_path, clock):
    directory = LogDirectory(tmp_path, "cluster", 1)
    yield LogManager(clock, directories=[directory])
    directory.close()


def new_log(logs, **config):
    return logs.get_or_create(KEY, bytes(16), TopicConfig(**config))


def test_log_is_flushed_after_so_many_messages(logs):
    log = new_log(logs, flush_messages=3)
    points = []
    for _ in range(7):
        log.append_as_leader(BATCH, 0)
        points.append(log.storage.recovery_point)
    assert points == [0, 0, 3, 3, 3, 6, 6]
    log.update_config(log.config.replaced(flush_messages=1))
    log.append_as_leader(BATCH, 0)
    assert log.storage.recovery_point == 8


def test_files_of_a_flushed_log_are_brought_to_the_disk(logs, synced):
    log = new_log(logs)
    log.append_as_leader(BATCH, 0)
    synced.clear()
    log.flush_batches()
    (segment,) = log.storage.directory.glob("*.log")
    assert segment.stat().st_ino in synced


def test_follower_flushes_as_its_leader_does(logs):
    log = new_log(logs, flush_messages=2)
    log.append_as_follower([BATCH])
    assert log.storage.recovery_point == 0
    again = bytearray(BATCH)
    again[7] = 1  # the base offset
    log.append_as_follower([bytes(again)])
    assert log.storage.recovery_point == 2


def test_log_is_flushed_when_its_time_is_over(logs, clock):
    log = new_log(logs, flush_ms=1_000)
    log.append_as_leader(BATCH, 0)
    clock.advance_to(clock.now_ms() + 999)
    logs.flush_dirty_logs()
    assert log.storage.recovery_point == 0
    clock.advance_to(clock.now_ms() + 1)
    logs.flush_dirty_logs()
    assert log.storage.recovery_point == 1
    log.append_as_leader(BATCH, 0)
    logs.flush_dirty_logs()
    assert log.storage.recovery_point == 1


def test_recovery_points_have_a_checkpoint_of_their_own(logs, tmp_path):
    log = new_log(logs, flush_messages=1)
    log.append_as_leader(BATCH, 0)
    logs.checkpoint_log_start_offsets()
    assert not (tmp_path / RECOVERY_POINTS).exists()
    logs.checkpoint_recovery_points()
    assert read_offsets(tmp_path / RECOVERY_POINTS) == {KEY: 1}


def test_nothing_is_flushed_by_default():
    assert TopicConfig().flush_messages == TopicConfig().flush_ms == (1 << 63) - 1
    assert BrokerConfig().log_flush_scheduler_interval_ms == (1 << 63) - 1


@pytest.mark.parametrize("cut", ["to an offset", "whole"])
def test_truncation_is_checkpointed_at_once(logs, cut):
    log = new_log(logs)
    for _ in range(3):
        log.append_as_leader(BATCH, 0)
    log.roll()
    logs.checkpoint_offsets()
    file = logs.directories[0].path / RECOVERY_POINTS
    assert read_offsets(file) == {KEY: 3}
    log.truncate_to(3)
    if cut == "whole":
        log.truncate_fully_and_start_at(1)
    else:
        log.truncate_to(1)
    assert read_offsets(file) == {KEY: 1}


def test_segment_that_ends_where_it_did_before_a_truncation_is_synced_again(logs):
    log = new_log(logs)
    log.append_as_leader(BATCH, 0)
    log.append_as_leader(BATCH, 0)
    log.flush()
    log.truncate_to(1)
    assert log.storage.recovery_point == 1
    log.append_as_leader(build_batch([Record(b"other", timestamp=1_000_500)]), 1)
    log.roll()
    assert log.storage.recovery_point == 2
    times = logs.directories[0].path / "topic-0" / f"{0:020d}.timeindex"
    assert times.read_bytes() == (1_000_500).to_bytes(8) + (1).to_bytes(4)


def test_truncation_above_the_recovery_point_writes_no_checkpoint(logs):
    log = new_log(logs)
    log.append_as_leader(BATCH, 0)
    log.truncate_to(0)
    assert not (logs.directories[0].path / RECOVERY_POINTS).exists()
