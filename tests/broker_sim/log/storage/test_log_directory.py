from pathlib import Path

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ConfigError, ErrorCode
from broker_sim.log import LogDirectory, LogDirectoryError, LogManager
from broker_sim.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from broker_sim.log.storage.checkpoint_files import read_lines, read_offsets, write_offsets
from broker_sim.log.storage.guard import StorageGuard
from broker_sim.log.storage.open_files import OpenFiles
from broker_sim.log.storage.segment_file import SegmentFile
from broker_sim.log.storage.snapshot_files import decode_snapshot, encode_snapshot
from broker_sim.metadata.topic_partition import TopicPartition


@pytest.fixture
def path(tmp_path):
    return tmp_path / "broker-1"


def open_and_close(path, cluster_id="cluster", broker_id=1):
    directory = LogDirectory(path, cluster_id, broker_id)
    directory.close()
    return directory


def test_directory_belongs_to_one_broker_of_one_cluster(path):
    open_and_close(path)
    assert "node.id=1\n" in (path / "meta.properties").read_text()
    open_and_close(path)
    with pytest.raises(LogDirectoryError, match=r"cluster\.id=cluster, but expected is cluster\.id=other"):
        open_and_close(path, cluster_id="other")
    with pytest.raises(LogDirectoryError, match=r"node\.id=1, but expected is node\.id=2"):
        open_and_close(path, broker_id=2)
    open_and_close(path)


@pytest.mark.parametrize("content", ["partition.metadata", "00000000000000000000.log"])
def test_directory_with_logs_but_without_meta_properties_is_refused(path, content):
    open_and_close(path)
    (path / "t.x-10").mkdir()
    (path / "t.x-10" / content).touch()
    properties = path / "meta.properties"
    kept = properties.rename(path.parent / "kept")
    with pytest.raises(LogDirectoryError, match=r"broker-1/meta\.properties is missing, but there is t\.x-10: put"):
        open_and_close(path)
    assert not properties.exists()
    kept.rename(properties)
    open_and_close(path)


def test_directory_that_has_no_identity_and_no_log_yet_gets_its_identity(path):
    path.mkdir()
    for name in (".lock", "meta.properties.tmp"):
        (path / name).touch()
    for name in ("lost+found", "notes-2024", "t-0.0123-delete"):
        (path / name).mkdir()
    open_and_close(path)
    assert "node.id=1\n" in (path / "meta.properties").read_text()


def test_directory_is_used_by_one_at_a_time(path):
    directory = LogDirectory(path, "cluster", 1)
    with pytest.raises(ConfigError, match="another process or cluster uses this directory"):
        LogDirectory(path, "cluster", 1)
    directory.close()
    open_and_close(path)


def test_clean_shutdown_file_is_kafkas(path):
    directory = LogDirectory(path, "cluster", 1)
    assert directory.clean_shutdown_epoch is None
    directory.write_clean_shutdown(12)
    assert (path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":12}'
    directory.close()
    assert open_and_close(path).clean_shutdown_epoch == 12
    assert open_and_close(path).clean_shutdown_epoch is None


def test_partition_metadata_is_that_of_kafka(path):
    directory = LogDirectory(path, "cluster", 1)
    directory.new_log(TopicPartition("a-b", 3)).create(bytes(range(16)))
    text = (path / "a-b-3" / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    ((found, topic_id, _storage),) = directory.logs()
    directory.close()
    assert (found, topic_id) == (TopicPartition("a-b", 3), bytes(range(16)))


def test_checkpoint_is_text(tmp_path):
    path = tmp_path / "checkpoint"
    assert read_offsets(path) == {}
    offsets = {TopicPartition("a", 0): 5, TopicPartition("b", 1): 7}
    write_offsets(path, offsets)
    assert path.read_text() == "0\n2\na 0 5\nb 1 7\n"
    assert read_offsets(path) == offsets


@pytest.mark.parametrize("text", ["", "0\n", "0\n2\na 0 5\n", "1\n1\na 0 5\n", "0\nx\n"])
def test_damaged_checkpoint_is_refused(tmp_path, text):
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        read_lines(path)


def entries():
    batch = BatchMetadata(last_sequence=9, last_offset=30, offset_delta=4, timestamp=77)
    yield ProducerStateEntry(
        1, producer_epoch=2, coordinator_epoch=3, last_timestamp=77, current_txn_first_offset=26, batch_metadata=[batch]
    )
    yield ProducerStateEntry(5, producer_epoch=0, last_timestamp=88)


def fields(entry):
    return (
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.current_txn_first_offset,
        entry.batch_metadata,
    )


def test_snapshot_has_every_field():
    given = list(entries())
    found = decode_snapshot(encode_snapshot(given))
    assert list(map(fields, found)) == list(map(fields, given))


def test_damaged_snapshot_is_refused():
    content = encode_snapshot(list(entries()))
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(bytes(damaged))
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(content[:position])


def test_few_open_files_are_enough(tmp_path):
    files = OpenFiles(most=2)
    for number in range(5):
        files.create(tmp_path / str(number))
    for round_number in range(3):
        for number in range(5):
            descriptor = files.descriptor(tmp_path / str(number))
            assert descriptor == files.descriptor(tmp_path / str(number)), round_number
    files.close_all()


def test_created_file_is_empty_and_opened_when_it_is_used(tmp_path):
    path, files = tmp_path / "log", OpenFiles()
    path.write_bytes(b"old")
    files.create(path)
    assert path.read_bytes() == b""
    path.unlink()
    with pytest.raises(FileNotFoundError):
        files.read(path, 1, 0)
    files.create(path)
    files.write(path, b"batch", 0)
    files.create(path)
    assert files.read(path, 9, 0) == path.read_bytes() == b""
    files.close_all()


def test_full_disk_is_a_storage_error_from_then_on(caplog):
    files, failures = OpenFiles(), []
    guard = StorageGuard(Path("/dev"))
    guard.on_failed = lambda: failures.append("failed")
    file = SegmentFile(Path("/dev/full"), files, guard)
    with pytest.raises(ApiError, match="append to full in /dev: No space left on device") as caught:
        file.append(b"batch", 5)
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    for use in (lambda: file.append(b"batch", 5), lambda: file.read(0, 5), lambda: file.truncate(0)):
        with pytest.raises(ApiError, match="The log /dev is offline"):
            use()
    files.close_all()
    assert failures == ["failed"]
    assert caplog.text.count("log_offline") == 1


def test_file_that_was_cut_is_a_storage_error(tmp_path):
    files = OpenFiles()
    file = SegmentFile(tmp_path / "log", files, StorageGuard(tmp_path))
    (tmp_path / "log").write_bytes(b"bat")
    with pytest.raises(ApiError, match="the file ends at 3, within its batches"):
        file.read(0, 5)
    files.close_all()


def test_long_start_logs_its_progress_each_second(path, monkeypatch, caplog):
    clock = VirtualClock(wall_start_ms=1_000_000)
    real = LogManager._open_files

    def slow(self, *arguments):
        clock.advance(400)
        return real(self, *arguments)

    directory = LogDirectory(path, "cluster", 1)
    logs = LogManager(clock, directories=[directory])
    for number in range(7):
        logs.get_or_create(TopicPartition("topic", number), bytes(16), TopicConfig())
    directory.close()
    monkeypatch.setattr(LogManager, "_open_files", slow)
    with caplog.at_level("INFO"):
        directory = LogDirectory(path, "cluster", 1)
        LogManager(clock, directories=[directory])
    directory.close()
    told = [line for line in caplog.text.splitlines() if "logs_opened" in line]
    assert ["logs=3 of=7" in told[0], "logs=6 of=7" in told[1]] == [True, True]
    assert len(told) == 2
