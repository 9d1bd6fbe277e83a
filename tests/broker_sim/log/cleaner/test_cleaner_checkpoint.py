"""`cleaner-offset-checkpoint`: the boundary between the clean tail and the dirty head survives a restart."""

import pytest

from broker_sim.config import TopicConfig
from broker_sim.log import LogDirectory, LogManager
from broker_sim.log.cleaner.batch_filter import OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

KEY, OTHER = TopicPartition("topic", 0), TopicPartition("other", 3)
TOPIC_ID = bytes(range(16))
CONFIG = TopicConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
FILE = "cleaner-offset-checkpoint"


class Machine:
    """A broker's directory with two compacted logs, cleaned by hand."""

    def __init__(self, path, clock):
        self.path = path
        self.clock = clock
        self.start()

    def start(self):
        self.directory = LogDirectory(self.path, "cluster", 1)
        self.logs = LogManager(self.clock, directories=[self.directory])
        self.logs.recover()
        self.manager = self.logs.cleaner
        for key in (KEY, OTHER):
            log = self.logs.get_or_create(key, TOPIC_ID, CONFIG)
            log.update_config(CONFIG)
            log.offsets.update_high_watermark(log.log_end_offset)

    def kill_and_start(self):
        self.directory.close()
        self.start()

    def log(self, key=KEY):
        return self.logs.get(key, TOPIC_ID)

    def append_segments(self, count, key=KEY):
        log = self.log(key)
        for _ in range(count):
            log.append_as_leader(build_batch([Record(b"v", b"key", 1_000_000)]), 0)
            log.offsets.update_high_watermark(log.log_end_offset)
            log.roll()

    def grab(self, key=KEY):
        return self.manager.grab_filthiest_compacted_log([self.log(key)])

    def clean(self, key=KEY):
        cleanable = self.grab(key)
        work = Cleaner(cleanable, OffsetMap(24 * 100, 1.0)).clean()
        while True:
            try:
                next(work)
            except StopIteration as done:
                self.manager.done_cleaning(cleanable, done.value)
                return

    def checkpoint(self):
        return (self.path / FILE).read_text()


@pytest.fixture
def machine(tmp_path, clock):
    machine = Machine(tmp_path / "broker-1", clock)
    yield machine
    machine.directory.close()


def test_boundary_survives_a_kill_in_kafkas_format(machine):
    machine.append_segments(4)
    machine.append_segments(2, OTHER)
    machine.clean()
    assert machine.checkpoint() == "0\n1\ntopic 0 4\n"
    machine.clean(OTHER)
    assert sorted(machine.checkpoint().splitlines()) == ["0", "2", "other 3 2", "topic 0 4"]
    machine.kill_and_start()
    assert machine.grab() is None
    machine.append_segments(1)
    found = machine.grab()
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (4, 5)


def test_truncation_moves_the_boundary_in_the_file(machine):
    machine.append_segments(4)
    machine.clean()
    machine.log().truncate_to(3)
    assert machine.checkpoint() == "0\n1\ntopic 0 3\n"


def test_deleted_partition_leaves_the_file(machine):
    machine.append_segments(2)
    machine.append_segments(2, OTHER)
    machine.clean()
    machine.clean(OTHER)
    machine.logs.delete(KEY)
    assert machine.checkpoint() == "0\n1\nother 3 2\n"


def test_deleted_partitions_are_removed_from_the_checkpoint(machine):
    machine.directory.close()
    (machine.path / FILE).write_text("0\n2\ngone 0 7\ntopic 0 1\n")
    machine.start()
    machine.append_segments(2)
    assert machine.grab().first_dirty_offset == 1
    machine.manager.abort_cleaning(KEY)
    machine.clean()
    assert machine.checkpoint() == "0\n1\ntopic 0 2\n"


def test_offset_beyond_the_log_is_set_to_its_start_in_the_file(machine):
    machine.directory.close()
    (machine.path / FILE).write_text("0\n1\ntopic 0 99\n")
    machine.start()
    machine.append_segments(2)
    assert machine.grab().first_dirty_offset == 0
    assert machine.checkpoint() == "0\n1\ntopic 0 0\n"


def test_damaged_file_makes_all_dirty(machine, caplog):
    machine.append_segments(2)
    machine.clean()
    machine.directory.close()
    (machine.path / FILE).write_text("0\n2\ntopic 0 2\n")
    machine.start()
    assert f"checkpoint_reset file='{machine.path / FILE}'" in caplog.text
    assert machine.grab().first_dirty_offset == 0


def test_file_that_cannot_be_written_is_logged_and_the_boundary_holds_until_the_restart(machine, caplog):
    (machine.path / f"{FILE}.tmp").mkdir()
    machine.append_segments(2)
    machine.clean()
    assert f"checkpoint_failed file='{machine.path / FILE}.tmp' why='Is a directory'" in caplog.text
    assert machine.grab() is None
    machine.kill_and_start()
    assert machine.grab().first_dirty_offset == 0


def test_uncleanable_partition_is_tried_again_after_a_restart(machine):
    machine.append_segments(3)
    assert machine.manager.uncleanable_bytes(machine.logs.logs) == 0
    machine.manager.cleaning_failed(KEY, TypeError("a batch that makes no sense"))
    dirty_bytes = sum(segment.size_bytes for segment in machine.log().segments)
    assert machine.manager.uncleanable_bytes(machine.logs.logs) == dirty_bytes > 0
    assert machine.grab() is None
    machine.logs.checkpoint_offsets()
    machine.kill_and_start()
    assert machine.manager.uncleanable_partitions == frozenset()
    assert machine.manager.uncleanable_bytes(machine.logs.logs) == 0
    machine.clean()
    assert machine.checkpoint() == "0\n1\ntopic 0 3\n"


def test_counting_uncleanable_bytes_writes_nothing(machine):
    machine.append_segments(4)
    machine.clean()
    machine.manager.mark_uncleanable(KEY)
    (machine.path / FILE).unlink()
    log = machine.log()
    log.truncate_fully_and_start_at(2)
    machine.append_segments(1)
    log.delete_oldest_segments(1)
    (machine.path / FILE).unlink(missing_ok=True)
    before = dict(machine.manager.first_dirty_offsets)
    assert before[KEY] < log.log_start_offset
    machine.manager.uncleanable_bytes(machine.logs.logs)
    assert machine.manager.first_dirty_offsets == before
    assert not (machine.path / FILE).exists()
