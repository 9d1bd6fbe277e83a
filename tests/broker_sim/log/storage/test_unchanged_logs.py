"""What nothing has happened to is neither written nor looked at again."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.log import LogDirectory, LogManager
from broker_sim.log.storage.checkpoint_files import read_offsets
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

KEY = TopicPartition("topic", 0)
OTHER = TopicPartition("topic", 1)
BATCH = build_batch([Record(b"value", timestamp=1_000_000)])
CHECKPOINTS = {
    "replication-offset-checkpoint": LogManager.checkpoint_high_watermarks,
    "log-start-offset-checkpoint": LogManager.checkpoint_log_start_offsets,
    "recovery-point-offset-checkpoint": LogManager.checkpoint_recovery_points,
}


class Machine:
    """A broker's log directory, opened again and again."""

    def __init__(self, path):
        self.path = path
        self.start()

    def start(self):
        self.directory = LogDirectory(self.path, "cluster", 1)
        self.logs = LogManager(VirtualClock(wall_start_ms=1_000_000), directories=[self.directory])
        self.logs.recover()

    def create(self, key=KEY):
        return self.logs.get_or_create(key, bytes(16), TopicConfig())

    def stop(self):
        self.logs.shutdown(1)
        self.directory.close()

    def names(self):
        """The files of the log."""
        return sorted(path.name for path in (self.path / "topic-0").iterdir())


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    yield made
    made.directory.close()


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoint_is_written_when_something_in_it_is_new(machine, name):
    checkpoint, file = CHECKPOINTS[name], machine.path / name
    log = machine.create()
    assert checkpoint(machine.logs)
    file.unlink()
    assert checkpoint(machine.logs)
    assert not file.exists(), "nothing was new"
    log.append_as_leader(BATCH, 0)
    log.offsets.update_high_watermark(1)
    log.offsets.maybe_increment_log_start_offset(1)
    log.flush_batches()
    assert checkpoint(machine.logs)
    assert read_offsets(file) == {KEY: 1}
    file.unlink()
    machine.create(OTHER)
    assert checkpoint(machine.logs)
    assert read_offsets(file) == {KEY: 1, OTHER: 0}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoint_that_could_not_be_written_is_written_the_next_time(machine, name):
    checkpoint, file = CHECKPOINTS[name], machine.path / name
    log = machine.create()
    log.append_as_leader(BATCH, 0)
    log.flush_batches()
    obstacle = machine.path / f"{name}.tmp"
    obstacle.mkdir()
    assert not checkpoint(machine.logs)
    obstacle.rmdir()
    assert checkpoint(machine.logs)
    assert KEY in read_offsets(file)


def test_log_without_a_record_gets_no_index_files_at_a_shutdown(machine):
    machine.create()
    for _ in range(2):
        assert not [name for name in machine.names() if "index" in name]
        machine.stop()
        machine.start()
    log = machine.create()
    assert log.log_end_offset == 0
    log.append_as_leader(BATCH, 0)
    machine.stop()
    assert [name for name in machine.names() if "index" in name]
    machine.start()
    assert machine.create().log_end_offset == 1


def test_indexes_of_a_log_that_was_truncated_to_nothing_are_those_of_no_batch(machine):
    log = machine.create()
    log.append_as_leader(BATCH, 0)
    machine.stop()
    machine.start()
    machine.create().truncate_to(0)
    machine.stop()
    machine.start()
    index = machine.path / "topic-0" / f"{0:020d}.timeindex"
    assert not index.exists() or index.read_bytes() == b""


def test_unchanged_log_is_closed_as_it_is(machine):
    log = machine.create()
    log.append_as_leader(BATCH, 0)
    machine.stop()
    machine.start()
    before = {path: path.stat().st_mtime_ns for path in (machine.path / "topic-0").iterdir()}
    machine.stop()
    machine.start()
    after = {path: path.stat().st_mtime_ns for path in (machine.path / "topic-0").iterdir()}
    assert after == before
