"""Files of deleted segments and partitions: renamed at once, gone after their delay or at the next start."""

import re

import pytest

from broker_sim.config import BrokerConfig, TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import LogDirectory, LogManager
from broker_sim.log.storage import MemoryBatches
from broker_sim.log.storage.deletions import delete_dir
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler

KEY = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
CONFIG = TopicConfig(internal_segment_bytes=150, file_delete_delay_ms=300)
BROKER_CONFIG = BrokerConfig(log_segment_delete_delay_ms=500)
SEGMENT_FILES = (".index", ".log", ".timeindex")


class Machine:
    """A broker's directory, and a process that has it open, in virtual time."""

    def __init__(self, path):
        self.path = path
        self.scheduler = VirtualScheduler()
        self.start()

    def start(self):
        self.directory = LogDirectory(self.path, "cluster", 1)
        self.logs = LogManager(self.scheduler.clock, directories=[self.directory])
        self.process = Process("broker-1", self.scheduler)
        self.logs.recover()
        self.logs.startup(self.process.call_later, BROKER_CONFIG)
        self.log = self.logs.get_or_create(KEY, TOPIC_ID, CONFIG)
        self.log.update_config(CONFIG)

    def append(self, count):
        for _ in range(count):
            record = Record(b"v" * 60, timestamp=self.scheduler.clock.wall_clock_ms())
            self.log.append_as_leader(build_batch([record]), 0)
        self.log.offsets.update_high_watermark(self.log.log_end_offset)

    def delete_first_segment(self):
        self.log.delete_oldest_segments(1)

    def advance(self, delay_ms):
        self.scheduler.advance_to(self.scheduler.clock.now_ms() + delay_ms)

    def names(self, pattern="topic-0/*.deleted"):
        return sorted(path.name for path in self.path.glob(pattern))


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path / "broker-1")
    machine.append(3)
    yield machine
    machine.directory.close()


def deleted(offset):
    return [f"{offset:020d}{suffix}.deleted" for suffix in SEGMENT_FILES]


def test_deleted_segment_is_renamed_and_removed_after_the_topics_delay(machine):
    machine.delete_first_segment()
    assert machine.names() == deleted(0)
    assert not machine.names(f"topic-0/{0:020d}.log")
    machine.advance(299)
    assert machine.names() == deleted(0)
    machine.advance(1)
    assert machine.names() == []
    assert machine.names("topic-0/*.log") == [f"{offset:020d}.log" for offset in (1, 2)]


def test_changed_delay_holds_for_later_deletions(machine):
    machine.delete_first_segment()
    machine.log.update_config(TopicConfig(internal_segment_bytes=150, file_delete_delay_ms=0))
    machine.delete_first_segment()
    machine.advance(0)
    assert machine.names() == deleted(0)


@pytest.mark.parametrize("how", ["deleted", "truncated", "cleaned", "partition"])
def test_ongoing_read_continues_until_the_files_are_removed(machine, how):
    segment = machine.log.segments[1]
    batch = segment.read(1, 1_000, 2, False).records
    if how == "deleted":
        machine.log.delete_oldest_segments(2)
    elif how == "truncated":
        machine.log.truncate_to(0)
    elif how == "cleaned":
        machine.log.storage.replace_segments([1], MemoryBatches(1, 4_096), 1_000)
    else:
        machine.logs.delete(KEY)
    assert segment.read(1, 1_000, 2, False).records == batch
    machine.directory.deletions.files.close_all()
    assert segment.read(1, 1_000, 2, False).records == batch


def test_log_continues_at_the_offset_of_a_deleted_segment(machine):
    machine.log.truncate_fully_and_start_at(1)
    machine.append(2)
    assert machine.names("topic-0/*.log") == [f"{offset:020d}.log" for offset in (1, 2)]
    machine.advance(300)
    assert len(b"".join(machine.log.read(1, 1_000, min_one_message=True).records)) > 60
    assert machine.names() == []


def test_deleted_partition_is_renamed_and_removed_after_the_brokers_delay(machine):
    machine.logs.delete(KEY)
    (name,) = machine.names("topic-*")
    assert re.fullmatch(r"topic-0\.[0-9a-f]{32}-delete", name)
    again = machine.logs.get_or_create(KEY, b"other id of 16 b", CONFIG)
    assert again.log_end_offset == 0
    machine.advance(499)
    assert machine.names("topic-*") == ["topic-0", name]
    machine.advance(1)
    assert machine.names("topic-*") == ["topic-0"]


def test_changed_delay_of_the_broker_holds_for_later_deletions(machine):
    machine.logs.reconfigure(BrokerConfig(log_segment_delete_delay_ms=1_000))
    machine.logs.delete(KEY)
    machine.advance(999)
    assert len(machine.names("topic-*")) == 1
    machine.advance(1)
    assert machine.names("topic-*") == []


def test_next_start_deletes_files_at_once_and_directories_after_the_delay(machine):
    machine.logs.get_or_create(TopicPartition("other", 0), TOPIC_ID, CONFIG)
    machine.logs.delete(TopicPartition("other", 0))
    machine.delete_first_segment()
    machine.advance(299)
    machine.process.kill()
    machine.advance(1_000)
    assert machine.names() == deleted(0)
    (other,) = machine.names("other-*")
    machine.directory.close()
    machine.start()
    assert machine.names() == []
    machine.advance(499)
    assert machine.names("other-*") == [other]
    machine.advance(1)
    assert machine.names("other-*") == []
    assert machine.log.log_start_offset == 1


def test_paused_process_deletes_nothing(machine):
    machine.delete_first_segment()
    machine.process.pause()
    machine.advance(1_000)
    assert machine.names() == deleted(0)
    machine.process.resume()
    assert machine.names() == []


def test_file_that_cannot_be_deleted_is_logged_and_removed_at_the_next_start(machine, caplog):
    machine.delete_first_segment()
    path = machine.path / "topic-0" / deleted(0)[1]
    path.unlink()
    path.mkdir()
    machine.advance(300)
    assert f"delete_failed file='{path}' why='Is a directory'" in caplog.text
    assert machine.names() == [path.name]
    path.rmdir()
    path.touch()
    machine.directory.close()
    machine.start()
    assert machine.names() == []


@pytest.mark.parametrize("length", [1, 200, 249])
def test_name_of_a_deleted_partition_is_not_too_long(tmp_path, length):
    name = delete_dir(tmp_path / ("t" * length + "-17")).name
    assert re.fullmatch(r"t+-17\.[0-9a-f]{32}-delete", name)
    assert len(name) <= 255
    assert (len(name) == 255) == (length > 200)


def test_deleted_partitions_of_one_topic_have_names_of_their_own(tmp_path):
    first = delete_dir(tmp_path / "topic-0")
    first.mkdir()
    second = delete_dir(tmp_path / "topic-0")
    assert first != second
    assert second == delete_dir(tmp_path / "topic-0")


def test_segments_of_one_name_are_kept_for_the_delay_of_each(machine):
    machine.append(1)
    machine.log.truncate_fully_and_start_at(0)
    first = [name for name in machine.names() if name.startswith("0" * 20 + ".log")]
    machine.advance(200)
    machine.append(1)
    machine.log.truncate_fully_and_start_at(0)
    both = [name for name in machine.names() if name.startswith("0" * 20 + ".log")]
    assert len(first) == 1
    assert len(both) == 2
    machine.advance(100)
    assert [name for name in machine.names() if name in both] == [name for name in both if name not in first]
    machine.advance(200)
    assert machine.names() == []


def test_segment_with_a_missing_file_is_written_to_a_new_file(machine):
    (machine.path / "topic-0" / f"{0:020d}.log").unlink()
    machine.log.truncate_fully_and_start_at(0)
    machine.append(1)
    assert (machine.path / "topic-0" / f"{0:020d}.log").stat().st_size > 60


def test_failed_deletion_is_retried_by_the_next_process(machine, monkeypatch):
    machine.logs.delete(KEY)

    def failing(*_):
        raise PermissionError(1, "no")

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", failing)
        machine.advance(500)
    (name,) = machine.names("topic-*")
    machine.directory.close()
    machine.start()
    machine.advance(500)
    assert name not in machine.names("topic-*")


def test_recovery_point_beyond_a_truncation_is_lowered(machine):
    machine.append(1)
    machine.log.flush()
    machine.logs.checkpoint_recovery_points()
    end_offset = machine.log.log_end_offset
    machine.log.truncate_to(end_offset - 1)
    machine.directory.close()
    machine.start()
    assert machine.log.log_end_offset == end_offset - 1
    assert machine.log.storage.recovery_point == end_offset - 1


def test_reader_of_a_deleted_segment_gets_an_error_and_the_log_lives_on(machine):
    machine.append(4)
    offline = []
    machine.logs.on_offline = offline.append
    segment = machine.log.segments[0]
    machine.log.roll()
    machine.delete_first_segment()
    expected = segment.read(0, 1000, 1, min_one_message=True).records
    assert len(b"".join(expected)) > 60
    machine.advance(300)
    with pytest.raises(ApiError, match="is deleted") as caught:
        segment.read(0, 1000, 1, min_one_message=True)
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert offline == []
    machine.append(1)


def test_reader_of_a_deleted_log_does_not_take_its_successor_offline(machine):
    machine.append(2)
    offline = []
    machine.logs.on_offline = offline.append
    segment = machine.log.segments[0]
    machine.logs.delete(KEY)
    machine.log = machine.logs.get_or_create(KEY, bytes(16), CONFIG)
    machine.advance(500)
    with pytest.raises(ApiError, match="is deleted"):
        segment.read(0, 1000, 1, min_one_message=True)
    assert offline == []
    machine.append(1)
    assert machine.logs.get(KEY, bytes(16)) is machine.log
