"""After a kill only the segments from the recovery point on are looked at when the log is opened.

Counted are the files whose batches are looked at, and the bytes that are read of each.
"""

import random
from collections import Counter

import pytest

from broker_sim.errors import ApiError
from broker_sim.log.storage.checkpoint_files import read_offsets
from broker_sim.log.storage.open_files import OpenFiles
from broker_sim.protocol.records import Record, build_batch

from .test_reopened_log import CONFIG, KEY, Machine, batch, marker, state_of, transactional

KEYS = 60
PRODUCERS = (1, 2, 3)
BATCH = batch(2)


@pytest.fixture
def read_bytes(monkeypatch):
    """How many bytes were read of each file, by its name."""
    counted, real = Counter(), OpenFiles.read

    def read(self, path, size_bytes, position):
        counted[path.name] += size_bytes
        return real(self, path, size_bytes, position)

    monkeypatch.setattr(OpenFiles, "read", read)
    return counted


@pytest.fixture
def large(tmp_path):
    """A machine with segments of which the indexes' last entries are far from the middle."""
    machine = Machine(tmp_path / "broker-1")
    machine.log.update_config(CONFIG.replaced(internal_segment_bytes=20_000))
    number = 0
    while len(machine.log.segments) < 4:
        machine.log.append_as_leader(batch(2, timestamp=1_000_000 + number), 0)
        number += 1
    machine.log.offsets.update_high_watermark(machine.log.log_end_offset)
    machine.logs.checkpoint_offsets()
    yield machine
    machine.directory.close()


@pytest.fixture
def machine(tmp_path):
    """A machine whose log has many segments, with idempotent producers; all is checkpointed."""
    machine = Machine(tmp_path / "broker-1")
    rng = random.Random(1)
    for _ in range(60):
        append_idempotent(machine.log, rng, epoch=machine.log.log_end_offset // 40)
    machine.log.offsets.update_high_watermark(machine.log.log_end_offset)
    machine.logs.checkpoint_offsets()
    assert len(machine.log.segments) > 8
    yield machine
    machine.directory.close()


def next_sequence(log, producer_id):
    entry = log.producer_state.active_producers.get(producer_id)
    return 0 if entry is None else entry.last_sequence + 1


def append_idempotent(log, rng, epoch):
    append_keyed(log, rng, epoch, rng.choice(PRODUCERS))


def append_keyed(log, rng, epoch, producer_id, **header):
    header |= {"base_sequence": next_sequence(log, producer_id), "producer_epoch": 0}
    records = [
        Record(b"x" * rng.randint(0, 40), b"%d" % rng.randrange(KEYS), 1_000_000 + rng.randrange(40))
        for _ in range(rng.randint(1, 3))
    ]
    log.append_as_leader(build_batch(records, producer_id=producer_id, **header), epoch)


def log_name(segment):
    return f"{segment.base_offset:020d}.log"


def set_recovery_point(machine, offset):
    machine.log.storage.recovery_point = offset
    machine.logs.checkpoint_recovery_points()


def checkpointed(machine):
    return read_offsets(machine.path / "recovery-point-offset-checkpoint").get(KEY, 0)


def names_from(log, recovery_point):
    """Return the files with batches that a recovery from there on has to look at."""
    ends = [*(segment.base_offset for segment in log.segments[1:]), float("inf")]
    return [
        log_name(segment)
        for segment, end in zip(log.segments, ends, strict=True)
        if end > recovery_point and segment.size_bytes
    ]


@pytest.mark.parametrize("where", ["first", "third", "within the third", "last", "end"])
def test_segments_below_the_recovery_point_are_not_looked_at(machine, looked_at, where):
    segments = machine.log.segments
    recovery_point = {
        "first": 0,
        "third": segments[2].base_offset,
        "within the third": segments[2].base_offset + 1,
        "last": segments[-1].base_offset,
        "end": machine.log.log_end_offset,
    }[where]
    set_recovery_point(machine, recovery_point)
    before = state_of(machine.log)
    expected = names_from(machine.log, recovery_point)
    skipped = {"first": 0, "third": 2, "within the third": 2}.get(where, len(segments) - 1)
    assert expected == [log_name(segment) for segment in segments[skipped:]]
    machine.restart(clean=False)
    assert looked_at == expected
    assert state_of(machine.log) == before
    assert looked_at == expected


def test_of_a_segment_below_only_the_ends_are_read(large, looked_at, read_bytes):
    read_bytes.clear()
    large.restart(clean=False)
    closed = large.log.segments[:-1]
    assert looked_at == [log_name(large.log.segments[-1])]
    assert all(0 < read_bytes[log_name(segment)] < 1_000 for segment in closed), read_bytes


@pytest.mark.parametrize("lost", ["newest snapshot", "older snapshot", "damaged snapshot", "epochs", "damaged epochs"])
def test_log_is_scanned_whole_if_a_needed_file_is_missing(machine, looked_at, caplog, lost):
    before = state_of(machine.log)
    segments = machine.log.segments
    snapshots = {int(path.stem): path for path in machine.files(".snapshot")}
    path = {
        "newest snapshot": snapshots[segments[-1].base_offset],
        "older snapshot": snapshots[segments[3].base_offset],
        "damaged snapshot": snapshots[segments[-1].base_offset],
    }.get(lost, machine.path / "topic-0" / "leader-epoch-checkpoint")
    machine.directory.close()
    if lost.startswith("damaged"):
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    machine.start()
    assert {*map(log_name, segments)} <= {*looked_at}
    assert state_of(machine.log) == before
    told = {"epochs": "leader_epochs_rebuilt", "damaged snapshot": "snapshot_deleted"}
    assert all(text in caplog.text for name, text in told.items() if lost.endswith(name))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("how", ["lost", "cut", "empty"])
def test_only_the_segment_without_a_sound_index_is_looked_at(machine, looked_at, suffix, how):
    before = state_of(machine.log)
    third, last = machine.log.segments[2], machine.log.segments[-1]
    path = machine.files(suffix)[2]
    content = path.read_bytes()
    assert int(path.stem) == third.base_offset
    assert content
    machine.directory.close()
    if how == "lost":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if how == "cut" else b"")
    machine.start()
    found = [name for name in looked_at if name != log_name(last)]
    is_enough = (suffix, how) == (".index", "empty")  # the batches are few: read from the first one on
    assert set(found) == (set() if is_enough else {log_name(third)})
    assert state_of(machine.log) == before
    assert path.exists()
    assert how == "empty" or len(path.read_bytes()) % (8 if suffix == ".index" else 12) == 0


@pytest.mark.parametrize("kind", ["ended before", "open before", "only the index says so"])
def test_log_with_transactions_below_the_recovery_point_is_looked_at(machine, looked_at, kind):
    log = machine.log
    log.append_as_leader(transactional(7, 0), 9)
    if kind != "open before":
        log.append_as_leader(marker(7, commit=False), 9, "coordinator")
    log.roll()
    log.append_as_leader(batch(2), 9)
    log.offsets.update_high_watermark(log.log_end_offset)
    machine.logs.checkpoint_offsets()
    before = state_of(log)
    assert bool(before["aborted"]) == (kind != "open before")
    machine.directory.close()
    for path in machine.files(".txnindex"):
        if kind == "ended before":
            path.unlink()
    if kind == "only the index says so":
        # As if the producer had expired before each of the snapshots.
        log.producer_state.active_producers[7].coordinator_epoch = -1
        path = machine.files(".snapshot")[-1]
        del log.storage.snapshots[int(path.stem)]
        log.storage.snapshots[int(path.stem)] = [*log.producer_state.active_producers.values()]
    machine.start()
    assert {*map(log_name, machine.log.segments)} <= {*looked_at}
    found = state_of(machine.log)
    assert (found["aborted"], found["stable"]) == (before["aborted"], before["stable"])


def test_transactions_above_the_recovery_point_are_found(machine, looked_at):
    log = machine.log
    log.roll()
    machine.logs.checkpoint_recovery_points()
    for producer_id in (7, 8):
        log.append_as_leader(transactional(producer_id, 0, 2), 9)
    log.append_as_leader(marker(7, commit=False), 9, "coordinator")
    log.offsets.update_high_watermark(log.log_end_offset)
    machine.logs.checkpoint_high_watermarks()
    before = state_of(log)
    assert before["aborted"]
    machine.restart(clean=False)
    assert looked_at == [log_name(log.segments[-1])]
    assert state_of(machine.log) == before


def test_torn_end_is_cut_and_segments_below_the_recovery_point_are_not_read(machine, looked_at, caplog):
    end_offset = machine.log.log_end_offset
    machine.log.append_as_leader(batch(5), 9)
    before = [segment.size_bytes for segment in machine.log.segments[:-1]]
    expected = names_from(machine.log, checkpointed(machine))
    machine.directory.close()
    last = machine.files(".log")[-1]
    last.write_bytes(last.read_bytes()[:-1])
    machine.start()
    assert f"log_truncated file='{last}'" in caplog.text
    assert machine.log.log_end_offset == end_offset
    assert [segment.size_bytes for segment in machine.log.segments[: len(before)]] == before
    assert looked_at == expected


def test_damage_below_is_found_when_it_is_read_and_at_each_start_after(large, looked_at, caplog):
    damaged = large.files(".log")[1]
    content = damaged.read_bytes()
    size_bytes = len(content) // 2 // len(BATCH) * len(BATCH)
    before = state_of(large.log)
    large.directory.close()
    damaged.write_bytes(content[: size_bytes + 8] + b"\x7f" + content[size_bytes + 9 :])
    large.start()
    assert damaged.name not in looked_at
    with pytest.raises(ApiError, match=f"{damaged.name} is damaged at byte {size_bytes}, offset"):
        large.log.read(int(damaged.stem), 1 << 20)
    assert KEY in large.logs.offline
    for _ in range(2):
        caplog.clear()
        large.directory.close()
        with pytest.raises(ApiError):
            large.start()
        assert f"{damaged.name} is damaged at byte {size_bytes}, offset" in caplog.text
    large.directory.close()
    damaged.write_bytes(content)
    large.start()
    assert state_of(large.log) == before
