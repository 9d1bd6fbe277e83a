"""A log in files that another process opens again: after a clean shutdown, and after a kill."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.log import LogDirectory, LogManager, ProducerStateManagerConfig
from broker_sim.log.cleaner.batch_filter import OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner
from broker_sim.log.cleaner.manager import LogToClean
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker

KEY = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
CONFIG = TopicConfig(internal_segment_bytes=400, index_interval_bytes=100)


def batch(count=1, value=b"value", timestamp=1_000_000, **header):
    return build_batch([Record(value, timestamp=timestamp) for _ in range(count)], **header)


def keyed(key, number, **header):
    return build_batch([Record(b"%d" % number, key, 1_000_000 + number)], **header)


def transactional(producer_id, sequence, count=1):
    return batch(count, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def marker(producer_id, *, commit):
    return build_end_txn_marker(
        producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, is_commit=commit, timestamp=1_000_000
    )


class Machine:
    """A broker's directory and the process that has it open."""

    def __init__(self, path):
        self.path = path
        self.clock = VirtualClock(wall_start_ms=1_000_000)
        self.start()

    def start(self):
        self.directory = LogDirectory(self.path, "cluster", 1)
        unverified = ProducerStateManagerConfig(86_400_000, False)
        self.logs = LogManager(self.clock, unverified, directories=[self.directory])
        self.logs.recover()
        self.log = self.logs.get_or_create(KEY, TOPIC_ID, CONFIG)
        self.log.update_config(CONFIG)

    def restart(self, *, clean):
        if clean:
            self.logs.shutdown(7)
        self.directory.close()
        self.start()

    def files(self, suffix):
        return sorted(self.path.glob(f"topic-0/*{suffix}"))


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path / "broker-1")
    yield machine
    machine.directory.close()


def state_of(log):
    producers = {
        producer_id: (
            entry.producer_epoch,
            entry.last_sequence,
            entry.current_txn_first_offset,
            entry.coordinator_epoch,
            entry.last_timestamp,
        )
        for producer_id, entry in log.producer_state.active_producers.items()
    }
    return {
        "bytes": [b"".join(found for _, found in segment.batches_from(0)) for segment in log.segments],
        "bases": [segment.base_offset for segment in log.segments],
        "offsets": (log.log_start_offset, log.high_watermark, log.log_end_offset),
        "stable": log.last_stable_offset,
        "epochs": log.leader_epoch_cache.entries,
        "producers": producers,
        "aborted": log.producer_state.transaction_index.collect(0, 1 << 40),
        "by time": [log.fetch_offset_by_timestamp(at) for at in (-3, -1, 0, 1_000_005)],
    }


def write_all_kinds(log):
    """Write data, two transactions, one of them aborted, and one that stays open; several segments."""
    for number in range(6):
        log.append_as_leader(batch(2, timestamp=1_000_000 + number), leader_epoch=number // 3)
    log.append_as_leader(transactional(7, 0, 3), 2)
    log.append_as_leader(transactional(8, 0, 2), 2)
    log.append_as_leader(marker(7, commit=False), 2, "coordinator")
    log.append_as_leader(batch(4, value=b"x" * 50), 2)
    log.append_as_leader(marker(8, commit=True), 2, "coordinator")
    log.append_as_leader(transactional(7, 3), 3)
    log.offsets.update_high_watermark(log.log_end_offset)


@pytest.mark.parametrize("clean", [True, False])
def test_reopened_log_has_everything(machine, clean):
    write_all_kinds(machine.log)
    machine.logs.checkpoint_high_watermarks()
    before = state_of(machine.log)
    assert len(before["bases"]) > 2
    assert before["aborted"]
    machine.restart(clean=clean)
    assert state_of(machine.log) == before
    machine.restart(clean=clean)
    assert state_of(machine.log) == before


@pytest.mark.parametrize("clean", [True, False])
def test_reopened_cleaned_log_has_everything(machine, clean):
    log = machine.log
    log.update_config(CONFIG.replaced(cleanup_policy=("compact",)))
    for number in range(12):
        log.append_as_leader(keyed(b"%d" % (number % 3), number), 0)
    aborted = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log.append_as_leader(keyed(b"aborted", 12, **aborted), 0)
    log.append_as_leader(marker(7, commit=False), 0, "coordinator")
    log.offsets.update_high_watermark(log.log_end_offset)
    log.roll()
    machine.logs.checkpoint_high_watermarks()
    size_bytes = log.size_bytes
    for _ in Cleaner(LogToClean(log, 0, 1_000_000), OffsetMap(24 * 100, 1.0)).clean():
        pass
    assert log.size_bytes < size_bytes
    assert len(machine.files(".index")) == len(log.segments) - 1
    before = state_of(log)
    machine.restart(clean=clean)
    assert state_of(machine.log) == before
    assert not machine.files(".swap") + machine.files(".cleaned")


def test_clean_shutdown_is_reported_once(machine):
    machine.restart(clean=True)
    assert machine.logs.clean_shutdown_epoch == 7
    machine.restart(clean=False)
    assert machine.logs.clean_shutdown_epoch == -1


def test_log_continues_after_a_restart(machine):
    write_all_kinds(machine.log)
    end = machine.log.log_end_offset
    machine.restart(clean=False)
    info = machine.log.append_as_leader(transactional(7, 4), 4)
    assert info.first_offset == end
    repeated = machine.log.append_as_leader(transactional(7, 4), 4)
    assert repeated.first_offset == end
    assert machine.log.log_end_offset == end + 1


@pytest.mark.parametrize("cut_bytes", [1, 30, 61])
def test_torn_batch_at_the_end_is_cut(machine, cut_bytes):
    for _ in range(3):
        machine.log.append_as_leader(batch(2), 0)
    path = machine.files(".log")[-1]
    content = path.read_bytes()
    whole = machine.log.position(4)
    machine.directory.close()
    path.write_bytes(content[: len(content) - cut_bytes])
    machine.start()
    assert machine.log.log_end_offset == 4
    assert path.stat().st_size == whole
    assert machine.log.append_as_leader(batch(2), 0).first_offset == 4
    assert path.read_bytes() == content


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("what", ["zeros", "damaged batch"])
def test_valid_batch_is_kept_whatever_follows_it(machine, what, count):
    for _ in range(count):
        machine.log.append_as_leader(batch(2), 0)
    path = machine.files(".log")[-1]
    content = path.read_bytes()
    machine.directory.close()
    damaged = bytearray(content[: len(content) // count])
    damaged[-1] ^= 1
    path.write_bytes(content + (bytes(4096) if what == "zeros" else damaged))
    machine.start()
    assert machine.log.log_end_offset == 2 * count
    assert path.read_bytes() == content


def test_batch_of_a_wrong_offset_is_cut_if_a_sound_one_follows(machine):
    for _ in range(3):
        machine.log.append_as_leader(batch(2), 0)
    path = machine.files(".log")[-1]
    content = bytearray(path.read_bytes())
    machine.directory.close()
    size_bytes = len(content) // 3
    content[size_bytes + 7] ^= 0x10  # the second one says that it begins at 18
    path.write_bytes(content)
    machine.start()
    assert machine.log.log_end_offset == 2
    assert path.stat().st_size == size_bytes


def test_damaged_batch_above_the_recovery_point_ends_the_log(machine):
    for _ in range(9):
        machine.log.append_as_leader(batch(2), 0)
    damaged, *later = machine.files(".log")[-2:]
    assert later
    base_offset = int(damaged.stem)
    machine.log.storage.recovery_point = base_offset
    machine.logs.checkpoint_recovery_points()
    machine.directory.close()
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    machine.start()
    assert machine.log.log_end_offset == int(later[0].stem) - 2
    assert not later[0].exists()
    assert machine.log.segments[-1].base_offset == base_offset


def test_segments_below_the_recovery_point_are_not_verified(machine):
    for _ in range(9):
        machine.log.append_as_leader(batch(2), 0)
    end = machine.log.log_end_offset
    machine.logs.checkpoint_recovery_points()
    assert machine.log.storage.recovery_point == machine.log.segments[-1].base_offset
    machine.directory.close()
    first = machine.files(".log")[0]
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    machine.start()
    assert machine.log.log_end_offset == end


def test_deleted_records_and_segments_stay_deleted(machine):
    write_all_kinds(machine.log)
    machine.log.offsets.maybe_increment_log_start_offset(5)
    machine.log.delete_old_segments()
    machine.logs.checkpoint_log_start_offsets()
    bases = [segment.base_offset for segment in machine.log.segments]
    machine.restart(clean=False)
    assert machine.log.log_start_offset == 5
    assert [segment.base_offset for segment in machine.log.segments] == bases
    assert [int(path.stem) for path in machine.files(".log")] == bases


def test_truncation_is_kept(machine):
    write_all_kinds(machine.log)
    machine.log.truncate_to(6)
    machine.logs.checkpoint_high_watermarks()
    before = state_of(machine.log)
    machine.restart(clean=False)
    assert state_of(machine.log) == before
    machine.log.truncate_fully_and_start_at(50)
    machine.restart(clean=False)
    assert machine.log.log_end_offset == 50
    assert [path.name for path in machine.files(".log")] == ["00000000000000000050.log"]


def test_lost_snapshots_and_indexes_are_made_again(machine):
    write_all_kinds(machine.log)
    machine.logs.checkpoint_high_watermarks()
    before = state_of(machine.log)
    for suffix in (".snapshot", ".index", ".timeindex", ".txnindex"):
        for path in machine.files(suffix):
            path.unlink()
    machine.restart(clean=False)
    assert state_of(machine.log) == before


def test_damaged_snapshot_is_left_out(machine):
    write_all_kinds(machine.log)
    machine.logs.checkpoint_high_watermarks()
    before = state_of(machine.log)
    newest = machine.files(".snapshot")[-1]
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    machine.restart(clean=False)
    assert state_of(machine.log) == before


def test_deleted_partition_is_not_found_again(machine):
    write_all_kinds(machine.log)
    machine.logs.delete(KEY)
    assert not (machine.path / "topic-0").exists()
    machine.restart(clean=False)
    assert machine.log.log_end_offset == 0


def test_topic_of_another_id_gets_an_empty_log(machine):
    write_all_kinds(machine.log)
    other = machine.logs.get_or_create(KEY, b"other id of 16 b", CONFIG)
    assert other.log_end_offset == 0
    machine.restart(clean=False)
    assert machine.logs.get(KEY, b"other id of 16 b") is None
    assert machine.log.log_end_offset == 0


def test_swapped_segment_replaces_the_old_ones(machine):
    write_all_kinds(machine.log)
    first, second = machine.files(".log")[:2]
    kept = first.read_bytes() + second.read_bytes()
    records = b"".join(state_of(machine.log)["bytes"])
    machine.directory.close()
    first.with_name(f"{first.name}.swap").write_bytes(kept)
    first.with_name(f"{second.name}.cleaned").write_bytes(b"half")
    machine.start()
    assert not second.exists()
    assert first.read_bytes() == kept
    assert b"".join(state_of(machine.log)["bytes"]) == records
    assert not machine.files(".swap")
    assert not machine.files(".cleaned")


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("how", ["compacted", "deleted"])
def test_epoch_without_its_first_batches_keeps_its_start_offset(machine, caplog, how, clean):
    log = machine.log
    log.update_config(CONFIG.replaced(cleanup_policy=("compact",)))
    for number in range(30):
        key = b"%d" % number if number < 10 or number > 14 else b"same"
        log.append_as_leader(keyed(key, number), int(number >= 10))
    log.append_as_leader(keyed(b"same", 30), 1)
    log.offsets.update_high_watermark(log.log_end_offset)
    log.roll()
    if how == "compacted":
        list(Cleaner(LogToClean(log, 0, 2_000_000), OffsetMap(24 * 100, 1.0)).clean())
        assert b"same" not in b"".join(log.read(10, 100).records)
        expected = ((0, 0), (1, 10))
    else:
        log.offsets.maybe_increment_log_start_offset(5)
        expected = ((0, 5), (1, 10))
    assert log.leader_epoch_cache.entries == expected
    machine.logs.checkpoint_offsets()
    machine.restart(clean=clean)
    assert machine.log.leader_epoch_cache.entries == expected
    assert "leader_epochs_rebuilt" not in caplog.text


def test_duplicate_batch_counts_once_after_a_kill(machine):
    for number in range(3):
        machine.log.append_as_leader(batch(1, timestamp=1_000_000 + number), 0)
    (file,) = machine.files(".log")
    content = file.read_bytes()
    file.write_bytes(content + content[-len(content) // 3 :])
    machine.restart(clean=False)
    assert machine.log.log_end_offset == 3
    assert file.read_bytes() == content


@pytest.mark.parametrize("clean", [True, False])
def test_producers_without_any_snapshot_are_found_in_the_batches_after_a_kill_only(machine, clean):
    write_all_kinds(machine.log)
    before = state_of(machine.log)["producers"]
    assert before
    if clean:
        machine.logs.shutdown(7)
    machine.directory.close()
    for snapshot in machine.files(".snapshot"):
        snapshot.unlink()
    machine.start()
    assert state_of(machine.log)["producers"] == ({} if clean else before)


def test_producers_whose_snapshots_are_all_damaged_are_found_in_the_batches(machine):
    write_all_kinds(machine.log)
    before = state_of(machine.log)["producers"]
    machine.logs.shutdown(7)
    machine.directory.close()
    for snapshot in machine.files(".snapshot"):
        snapshot.write_bytes(b"damaged")
    machine.start()
    assert state_of(machine.log)["producers"] == before
