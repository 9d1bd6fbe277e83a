"""Each reader gets a changed log once, until it changes again."""

import pytest

from broker_sim.config import TopicConfig
from broker_sim.log import LogManager
from broker_sim.log.log_offsets import CLOSED, HIGH_WATERMARKS, INVARIANTS
from broker_sim.metadata.topic_partition import TopicPartition

KEY = TopicPartition("topic", 0)


@pytest.fixture
def logs(clock):
    return LogManager(clock)


@pytest.fixture
def log(logs):
    return logs.get_or_create(KEY, bytes(16), TopicConfig())


def test_reader_gets_a_log_once_until_it_moves_again(logs, log, batch):
    changed = logs.changed
    assert changed.take(HIGH_WATERMARKS) == []
    log.append_as_leader(batch(2), 0)
    log.offsets.update_high_watermark(1)
    assert changed.take(HIGH_WATERMARKS) == [log.offsets]
    assert changed.take(HIGH_WATERMARKS) == []
    log.offsets.update_high_watermark(2)
    assert changed.take(HIGH_WATERMARKS) == [log.offsets]


def test_each_reader_gets_a_moved_log(logs, log, batch):
    log.append_as_leader(batch(1), 0)
    assert logs.changed.take(HIGH_WATERMARKS) == [log.offsets]
    assert logs.changed.take(CLOSED) == [log.offsets]


def test_new_reader_gets_later_moves(logs, log, batch):
    log.append_as_leader(batch(1), 0)
    assert logs.changed.take(HIGH_WATERMARKS) == [log.offsets]
    assert logs.changed.take(INVARIANTS) == []
    log.offsets.update_high_watermark(1)
    assert logs.changed.take(INVARIANTS) == [log.offsets]


def test_recovered_log_has_changed_and_a_deleted_one_is_forgotten(logs, log):
    logs.recover()
    assert logs.changed.take(HIGH_WATERMARKS) == [log.offsets]
    log.offsets.update_high_watermark(0)
    logs.delete(KEY)
    assert logs.changed.take(HIGH_WATERMARKS) == logs.changed.take(CLOSED) == []
