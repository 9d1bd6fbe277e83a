"""What a log manager does with a log whose files have failed."""

import errno
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import LogDirectory, LogManager
from broker_sim.log.storage.checkpoint_files import read_offsets
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

BAD, GOOD = TopicPartition("bad", 0), TopicPartition("good", 0)
TOPIC_ID = bytes(range(16))
OTHER_ID = b"other id of 16 b"
BATCH = build_batch([Record(b"value", timestamp=1_000_000)])


class Disk:
    """A broker's directory with two logs; the directory of one can be taken away."""

    def __init__(self, path):
        self.path = path
        self.offline = []
        self.start()
        for key in (BAD, GOOD):
            log = self.logs.get_or_create(key, TOPIC_ID, TopicConfig())
            log.append_as_leader(BATCH, 0)
            log.append_as_leader(BATCH, 0)
            log.offsets.update_high_watermark(2)
            log.offsets.maybe_increment_log_start_offset(1)
        self.logs.checkpoint_offsets()

    def start(self):
        self.directory = LogDirectory(self.path, "cluster", 1)
        self.logs = LogManager(VirtualClock(wall_start_ms=1_000_000), directories=[self.directory])
        self.logs.on_offline = self.offline.append
        self.logs.recover()

    def restart(self):
        self.directory.close()
        self.start()

    def log(self, key):
        return self.logs.get(key, TOPIC_ID)

    def take_away(self):
        shutil.copytree(self.path / "bad-0", self.path / "copy")
        shutil.rmtree(self.path / "bad-0")

    def bring_back(self):
        (self.path / "copy").rename(self.path / "bad-0")

    def fail(self):
        self.take_away()
        log = self.log(BAD)
        with pytest.raises(ApiError) as caught:
            log.roll()
        assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def disk(tmp_path):
    disk = Disk(tmp_path / "broker-1")
    yield disk
    disk.directory.close()


class Offsets(NamedTuple):
    """The three offsets of a log."""

    start: int
    high_watermark: int
    end: int


def offsets(log):
    return Offsets(log.log_start_offset, log.high_watermark, log.log_end_offset)


def test_log_is_offline_until_the_next_start(disk):
    disk.fail()
    assert disk.offline == [BAD]
    assert disk.logs.offline_logs() == {(TOPIC_ID, 0)}
    assert disk.log(BAD) is None
    with pytest.raises(ApiError, match="The log of bad-0 is offline"):
        disk.logs.get_or_create(BAD, TOPIC_ID, TopicConfig())
    disk.log(GOOD).append_as_leader(BATCH, 0)
    disk.bring_back()
    disk.restart()
    assert not disk.logs.offline
    assert offsets(disk.log(BAD)) == Offsets(start=1, high_watermark=2, end=2)


@pytest.mark.parametrize("fails", [True, False])
def test_directory_with_an_offline_log_was_not_shut_down_cleanly(disk, fails):
    if fails:
        disk.fail()
    disk.logs.shutdown(7)
    assert (disk.path / ".kafka_cleanshutdown").exists() != fails
    assert disk.logs.clean_shutdown_epoch == (-1 if fails else 7)
    for name in ("log-start-offset-checkpoint", "replication-offset-checkpoint"):
        assert read_offsets(disk.path / name).keys() == {BAD, GOOD}
    disk.directory.close()
    if fails:
        disk.bring_back()
    disk.start()
    assert offsets(disk.log(BAD)) == offsets(disk.log(GOOD)) == Offsets(start=1, high_watermark=2, end=2)


def test_log_that_fails_while_the_broker_shuts_down_is_not_closed_cleanly(disk):
    disk.take_away()
    disk.logs.shutdown(7)
    assert disk.offline == [BAD]
    assert not (disk.path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("name", [".kafka_cleanshutdown", "replication-offset-checkpoint"])
def test_shutdown_that_cannot_be_written_is_not_clean(disk, name):
    disk.logs.shutdown(6)
    disk.restart()
    (disk.path / f"{name}.tmp").mkdir()
    disk.logs.shutdown(7)
    assert disk.logs.clean_shutdown_epoch == -1
    assert not (disk.path / ".kafka_cleanshutdown").exists()


def test_log_that_cannot_be_opened_is_offline_and_others_are_served(disk, caplog):
    disk.logs.shutdown(7)
    disk.directory.close()
    path = disk.path / "bad-0" / f"{0:020d}.log"
    path.unlink()
    path.mkdir()
    disk.start()
    assert disk.logs.offline.keys() == {BAD}
    assert offsets(disk.log(GOOD)) == Offsets(start=1, high_watermark=2, end=2)
    assert caplog.text.count("action='open the log' why='Is a directory'") == 1


def test_partition_metadata_that_cannot_be_read_takes_one_log_offline(disk, caplog):
    disk.logs.shutdown(7)
    disk.directory.close()
    path = disk.path / "bad-0" / "partition.metadata"
    path.unlink()
    path.mkdir()
    disk.start()
    assert disk.logs.offline.keys() == {BAD}
    assert f"partition_metadata_damaged file='{path}'" in caplog.text
    assert offsets(disk.log(GOOD)) == Offsets(start=1, high_watermark=2, end=2)


def test_log_whose_batches_make_no_sense_is_offline_and_others_are_served(disk, caplog):
    log = disk.log(BAD)
    for sequence in range(2):
        header = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
        log.append_as_leader(build_batch([Record(b"value", timestamp=1_000_000)], **header), 0)
    position = log.position(3)
    log.roll()
    disk.logs.checkpoint_offsets()
    disk.directory.close()
    for snapshot in (disk.path / "bad-0").glob("*.snapshot"):
        snapshot.unlink()
    path = disk.path / "bad-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[position + 22] ^= 0x20  # a control batch now, whose record is no marker
    path.write_bytes(content)
    disk.start()
    assert disk.logs.offline.keys() == {BAD}
    assert "log_offline" in caplog.text
    assert "action='recover the log'" in caplog.text
    assert offsets(disk.log(GOOD)) == Offsets(start=1, high_watermark=2, end=2)


@pytest.mark.parametrize("how", ["same process", "killed", "closed"])
def test_closed_log_that_was_refused_is_refused_until_it_is_sound(disk, how):
    disk.logs.shutdown(7)
    disk.directory.close()
    path = disk.path / "bad-0" / f"{0:020d}.log"
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2 + 11] ^= 1  # the length of the second batch
    path.write_bytes(damaged)
    disk.start()
    assert disk.logs.offline.keys() == {BAD}

    def start_again():
        if how == "same process":
            disk.restart()
            return
        if how == "closed":
            disk.logs.shutdown(8)
        disk.restart()

    start_again()
    assert disk.logs.offline.keys() == {BAD}
    assert path.read_bytes() == damaged
    path.write_bytes(content)
    start_again()
    assert disk.log(BAD).log_end_offset == 2
    path.write_bytes(damaged)  # in the middle of a run, of which nothing was closed
    disk.restart()
    assert disk.log(BAD).log_end_offset == 1


def test_log_that_cannot_be_created_is_offline(disk):
    (disk.path / "new-0").write_text("a file is where its directory should be")
    key = TopicPartition("new", 0)
    with pytest.raises(ApiError, match="Cannot create the log") as caught:
        disk.logs.get_or_create(key, TOPIC_ID, TopicConfig())
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.offline == [key]


def test_log_that_could_not_be_deleted_is_not_that_of_the_next_topic(disk, caplog, monkeypatch):
    def is_busy(_path, _new_path):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "rename", is_busy)
    with pytest.raises(ApiError, match="has segments of another topic") as caught:
        disk.logs.get_or_create(BAD, OTHER_ID, TopicConfig())
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.logs.offline_logs() == {(OTHER_ID, 0)}
    assert "action='delete the log'" in caplog.text
    monkeypatch.undo()
    disk.logs.shutdown(7)
    disk.restart()
    log = disk.logs.get_or_create(BAD, OTHER_ID, TopicConfig())
    assert offsets(log) == Offsets(start=0, high_watermark=0, end=0)
    assert not disk.logs.offline


@pytest.mark.parametrize("is_made", [True, False])
def test_log_that_could_not_be_created_is_created_at_the_next_start(disk, is_made):
    key = TopicPartition("new", 0)
    in_the_way = disk.path / "new-0"
    if is_made:
        in_the_way.mkdir()
        in_the_way /= "partition.metadata.tmp"
        in_the_way.mkdir()
    else:
        in_the_way.write_text("a file is where its directory should be")
    with pytest.raises(ApiError, match="Cannot create the log"):
        disk.logs.get_or_create(key, TOPIC_ID, TopicConfig())
    disk.restart()
    with pytest.raises(ApiError, match="Cannot create the log"):
        disk.logs.get_or_create(key, TOPIC_ID, TopicConfig())
    in_the_way.rmdir() if is_made else in_the_way.unlink()
    disk.restart()
    disk.logs.get_or_create(key, TOPIC_ID, TopicConfig()).append_as_leader(BATCH, 0)
    disk.restart()
    assert disk.log(key).log_end_offset == 1


def test_log_without_a_known_topic_stays_offline(disk, caplog):
    disk.logs.shutdown(7)
    disk.directory.close()
    path = disk.path / "bad-0" / "partition.metadata"
    content = path.read_bytes()
    path.write_bytes(b"damaged")
    disk.start()
    with pytest.raises(ApiError, match="The log of bad-0 is offline"):
        disk.logs.get_or_create(BAD, OTHER_ID, TopicConfig())
    assert disk.logs.offline_logs() == {(OTHER_ID, 0)}
    disk.restart()
    assert disk.logs.offline.keys() == {BAD}
    assert caplog.text.count("partition_metadata_damaged") == 2
    path.write_bytes(content)
    disk.restart()
    assert offsets(disk.log(BAD)) == Offsets(start=1, high_watermark=2, end=2)


def test_checkpoint_that_cannot_be_written_is_logged_and_written_the_next_time(disk, caplog):
    in_the_way = disk.path / "replication-offset-checkpoint.tmp"
    in_the_way.mkdir()
    disk.log(GOOD).append_as_leader(BATCH, 0)
    disk.log(GOOD).offsets.update_high_watermark(3)
    disk.logs.checkpoint_high_watermarks()
    assert f"checkpoint_failed file='{in_the_way}' why='Is a directory'" in caplog.text
    in_the_way.rmdir()
    disk.logs.checkpoint_high_watermarks()
    assert read_offsets(disk.path / "replication-offset-checkpoint")[GOOD] == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_checkpoint_for_which_a_disk_has_no_room_is_named_in_the_log(disk, caplog):
    """The system names no file when a write fails."""
    full = disk.path / "replication-offset-checkpoint.tmp"
    full.symlink_to("/dev/full")
    disk.log(GOOD).append_as_leader(BATCH, 0)
    disk.log(GOOD).offsets.update_high_watermark(3)
    disk.logs.checkpoint_high_watermarks()
    assert f"checkpoint_failed file='{full}' why='No space left on device'" in caplog.text
