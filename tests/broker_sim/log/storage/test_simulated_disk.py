"""The simulated disk: what processes see, and what a power loss leaves."""

import errno
import random
import tracemalloc

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.log import DiskOptions, LogDirectory, LogManager, SimulatedDisk
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

KEY = TopicPartition("topic", 0)
SEEDS = range(80)


def disks(**options):
    """Return disks that differ in their chance only."""
    return [SimulatedDisk(str(seed), DiskOptions(**options)) for seed in SEEDS]


def content_of(path):
    return path.read_bytes() if path.exists() else None


def test_written_data_is_visible_before_it_is_flushed():
    root = SimulatedDisk("seed").root
    (root / "a").mkdir()
    path = root / "a" / "b.log"
    path.write_bytes(b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_size == 7
    assert list((root / "a").iterdir()) == [path]
    path.rename(root / "a" / "c.log")
    assert [each.name for each in (root / "a").glob("*.log")] == ["c.log"]


def test_sync_keeps_content_name_and_directory():
    for disk in disks():
        (disk.root / "a").mkdir()
        path = disk.root / "a" / "b"
        path.write_bytes(b"content")
        disk.sync(path)
        disk.lose_power()
        assert content_of(path) == b"content"


def test_unsynced_data_survives_at_random():
    found = set()
    for disk in disks():
        path = disk.root / "b"
        path.write_bytes(b"content")
        disk.lose_power()
        found.add(content_of(path))
    assert found == {None, b"", bytes(7), b"content"}


def test_write_is_torn_at_a_sector():
    sizes = set()
    for disk in disks():
        path = disk.root / "b"
        path.touch()
        disk.sync(path)
        disk.write(path, b"x" * 1_500, 100)
        disk.lose_power()
        sizes.add(path.stat().st_size)
    assert sizes == {0, 512, 1_024, 1_536, 1_600}


def test_sector_in_the_middle_may_keep_its_old_content():
    found = set()
    for disk in disks():
        path = disk.root / "b"
        path.write_bytes(b"old" * 512)
        disk.sync(path)
        disk.write(path, b"new" * 512, 0)
        disk.lose_power()
        sectors = [path.read_bytes()[at : at + 512] for at in range(0, 1_536, 512)]
        found.add(tuple(b"new" in sector for sector in sectors))
    assert {(False,) * 3, (True,) * 3} < found
    assert (True, False, True) in found


def test_bytes_do_not_survive_before_the_names_that_were_changed_first():
    survived = set()
    for disk in disks():
        first, second = disk.root / "first", disk.root / "second"
        first.touch()
        disk.sync(first)
        second.write_bytes(b"2")
        second.rename(disk.root / "third")
        disk.write(first, b"1", 0)
        disk.lose_power()
        has_bytes = bool(first.read_bytes())
        survived.add(has_bytes)
        if has_bytes:
            assert (disk.root / "third").exists()
            assert not second.exists()
    assert survived == {True, False}


def test_unsynced_truncation_may_be_undone():
    sizes = set()
    for disk in disks():
        path = disk.root / "b"
        path.write_bytes(b"content")
        disk.sync(path)
        disk.truncate(path, 3)
        assert path.read_bytes() == b"con"
        disk.lose_power()
        sizes.add(path.stat().st_size)
    assert sizes == {3, 7}


def test_lying_sync_persists_nothing_until_sync_all():
    found = set()
    for disk in disks(fsync_lies=True):
        path = disk.root / "b"
        path.write_bytes(b"content")
        disk.sync(path)
        disk.lose_power()
        found.add(content_of(path))
        disk.fsync_lies = False
        path.write_bytes(b"again")
        disk.sync(path)
        disk.lose_power()
        assert content_of(path) == b"again"
    assert None in found


def test_full_disk_accepts_a_partial_write():
    disk = SimulatedDisk("seed", DiskOptions(capacity_bytes=10))
    path = disk.root / "b"
    path.touch()
    assert disk.write(path, b"x" * 8, 0) == 8
    assert disk.write(path, b"x" * 8, 8) == 2
    with pytest.raises(OSError, match="No space") as raised:
        disk.write(path, b"x", 10)
    assert raised.value.errno == errno.ENOSPC
    assert disk.write(path, b"y" * 10, 0) == 10
    path.unlink()
    assert disk.used_bytes == 0


def test_read_only_disk_refuses_changes_and_can_be_read():
    disk = SimulatedDisk("seed")
    directory = disk.root / "a"
    directory.mkdir()
    path = directory / "b"
    path.write_bytes(b"content")
    disk.is_read_only = True
    for change in (
        lambda: disk.write(path, b"x", 0),
        lambda: disk.truncate(path, 0),
        lambda: disk.create(directory / "new"),
        lambda: disk.set_modified(path, 1),
        lambda: disk.remove_tree(directory),
        lambda: path.rename(directory / "c"),
        (directory / "new").mkdir,
        path.unlink,
    ):
        with pytest.raises(OSError, match="Read-only file system") as raised:
            change()
        assert raised.value.errno == errno.EROFS
    assert [each.name for each in directory.iterdir()] == ["b"]
    assert path.read_bytes() == b"content"
    assert path.stat().st_mtime_ns != 1
    disk.is_read_only = False
    path.unlink()
    assert not path.exists()


def test_duration_of_a_sync_follows_from_the_seed():
    def waits(seed):
        waited = []
        disk = SimulatedDisk(seed, DiskOptions(sync_ms=(1, 5)), on_wait=waited.append)
        (disk.root / "b").touch()
        for _ in range(20):
            disk.sync(disk.root / "b")
        return waited

    assert waits("1") == waits("1") != waits("2")
    assert set(waits("1")) == {1, 2, 3, 4, 5}


def test_errors_are_those_of_a_file_system():
    root = SimulatedDisk("seed").root
    with pytest.raises(FileNotFoundError):
        (root / "none").read_bytes()
    with pytest.raises(FileNotFoundError):
        (root / "none" / "b").write_bytes(b"")
    (root / "a").mkdir()
    with pytest.raises(FileExistsError):
        (root / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        (root / "a").read_bytes()


def open_logs(disk):
    return LogManager(
        VirtualClock(wall_start_ms=1_000_000), directories=[LogDirectory(disk.root / "broker-1", "cluster", 1, disk)]
    )


def batch(value):
    return build_batch([Record(value, timestamp=1_000_000)])


@pytest.mark.parametrize("flush_messages", [1, 3])
def test_recovery_keeps_what_was_flushed_and_cuts_what_is_torn(flush_messages):
    ends = set()
    for disk in disks():
        logs = open_logs(disk)
        log = logs.get_or_create(KEY, bytes(16), TopicConfig(flush_messages=flush_messages))
        for number in range(8):
            log.append_as_leader(batch(b"%d" % number * 300), 0)
        disk.lose_power()
        recovered = open_logs(disk)
        recovered.recover()
        log = recovered.get(KEY, bytes(16))
        assert log is not None
        batches = [bytes(each) for _, each in log.segments[0].batches_from(0)]
        assert [each[-300:-299] for each in batches] == [b"%d" % n for n in range(len(batches))]
        ends.add(log.log_end_offset)
    assert ends == ({8} if flush_messages == 1 else {6, 7, 8})


def test_unflushed_log_may_be_lost_but_is_never_damaged():
    found = set()
    for disk in disks():
        logs = open_logs(disk)
        log = logs.get_or_create(KEY, bytes(16), TopicConfig())
        log.append_as_leader(batch(b"value"), 0)
        disk.lose_power()
        recovered = open_logs(disk)
        recovered.recover()
        assert not recovered.offline
        found.add(recovered.get(KEY, bytes(16)) is None)
    assert found == {True, False}


def test_file_that_was_not_created_cannot_be_used():
    disk = SimulatedDisk("seed")
    path = disk.root / "b"
    for use in (
        lambda: disk.write(path, b"x", 0),
        lambda: disk.read(path, 1, 0),
        lambda: disk.truncate(path, 0),
        lambda: disk.sync(path),
        lambda: disk.remove_tree(path),
    ):
        with pytest.raises(FileNotFoundError):
            use()
    disk.create(path)
    assert disk.write(path, b"x", 0) == 1


def test_bytes_are_kept_once_whether_flushed_or_not():
    disk = SimulatedDisk("seed")
    path = disk.root / "b"
    path.touch()
    tracemalloc.start()
    try:
        for number in range(64):
            disk.write(path, bytes(16_384), number * 16_384)
        unflushed, _ = tracemalloc.get_traced_memory()
        disk.sync(path)
        flushed, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unflushed < 1.5 * 64 * 16_384
    assert flushed < 1.5 * 64 * 16_384


def test_power_loss_leaves_only_bytes_that_were_written():
    for seed in SEEDS:
        rng = random.Random(seed)
        disk = SimulatedDisk(str(seed))
        path = disk.root / "b"
        path.write_bytes(b"." * rng.randrange(20))
        disk.sync(path)
        states = [path.read_bytes()]
        for number in range(rng.randrange(6)):
            size = len(path.read_bytes())
            if rng.random() < 0.3:
                disk.truncate(path, rng.randrange(30))
            else:
                data = bytes([97 + number]) * rng.randrange(1, 9)
                disk.write(path, data, rng.randrange(size + 4))
            states.append(path.read_bytes())
        disk.lose_power()
        found = path.read_bytes()
        letters = set(found) - set(b"\0.")
        assert len(found) <= max(map(len, states))
        assert letters <= set(b"".join(states))
        if len(states) == 1:
            assert found == states[0]
