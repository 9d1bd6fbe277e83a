"""Segments that a clean start opens without a look at their batches: as if all had been looked at."""

import random
import shutil
from contextlib import suppress

import pytest

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError
from broker_sim.log.storage import files as files_module
from broker_sim.log.storage import sealed_batches
from broker_sim.log.storage.batch_scan import LARGE_BLOCK_BYTES
from broker_sim.protocol.record_batch import split_batches

from .test_damaged_files import damage
from .test_reopened_log import Machine, batch, marker, state_of, transactional

SEEDS = 12
more_seeds = [
    *range(SEEDS),
    *(pytest.param(seed, marks=pytest.mark.soak(part="kills")) for seed in range(SEEDS, 3 * SEEDS)),
]
TIMES = (-3, -1, 0, 1_000_003, 1_000_017, 1_000_100)


def fill(log, rng, count=40):
    for _ in range(count):
        log.append_as_leader(
            batch(rng.randint(1, 4), b"x" * rng.randint(0, 60), 1_000_000 + rng.randint(0, 40)),
            leader_epoch=log.log_end_offset // 40,
        )
    log.offsets.update_high_watermark(log.log_end_offset)


@pytest.fixture
def closed(tmp_path):
    """A machine whose log has many segments and was shut down."""
    machine = Machine(tmp_path / "broker-1")
    fill(machine.log, random.Random(1))
    assert len(machine.log.segments) > 5
    yield machine
    machine.directory.close()


def contents(machine):
    return {path.name: path.read_bytes() for path in machine.path.glob("topic-0/*") if path.suffix != ".snapshot"}


def test_start_and_shutdown_look_at_no_batch(closed, looked_at):
    before = state_of(closed.log)
    closed.restart(clean=True)
    written = contents(closed)
    closed.restart(clean=True)
    assert contents(closed) == written
    assert state_of(closed.log) == before
    assert looked_at == []


def test_first_read_checks_only_the_batches_that_it_returns(tmp_path, read_bytes):
    machine = Machine(tmp_path / "broker-1")
    machine.log.update_config(TopicConfig(index_interval_bytes=400))
    fill(machine.log, random.Random(2), 2_000)
    machine.restart(clean=True)
    log = machine.log
    middle = log.log_end_offset // 2
    read_bytes.clear()
    data = log.read(middle, 1_000)
    assert data.size_bytes == 1_000
    assert sum(read_bytes) <= 1_000 + 2 * LARGE_BLOCK_BYTES
    read_bytes.clear()
    assert log.read(middle, 1_000).records == data.records
    assert len(read_bytes) == 2  # the interval and the data: what is known is not looked at again
    machine.directory.close()


@pytest.mark.parametrize("step_ms", [0, -1, 1])
def test_start_reads_the_end_of_a_segment_whatever_its_times_are(tmp_path, read_bytes, step_ms):
    machine = Machine(tmp_path / "broker-1")
    machine.log.update_config(TopicConfig(index_interval_bytes=400))
    for number in range(4_000):
        machine.log.append_as_leader(batch(1, b"x" * 40, 1_000_000 + number * step_ms), 0)
    size_bytes = machine.log.size_bytes
    before = state_of(machine.log)
    read_bytes.clear()
    machine.restart(clean=True)
    assert sum(read_bytes) < size_bytes / 4
    assert state_of(machine.log) == before
    machine.directory.close()


def test_reader_at_the_end_does_not_check_earlier_batches(closed, looked_at):
    closed.restart(clean=True)
    end = closed.log.log_end_offset
    closed.log.append_as_leader(batch(3, b"new", 1_000_050), 9)
    data = closed.log.read(end, 1 << 20)
    assert len(split_batches(b"".join(data.records))) == 1
    assert closed.log.position(end + 3) - closed.log.position(end) == data.size_bytes
    assert looked_at == []


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kind", ["transaction", "marker"])
def test_log_with_transactions_is_looked_at(closed, looked_at, kind, clean):
    closed.log.append_as_leader(transactional(7, 0), 9)
    if kind == "marker":
        closed.log.append_as_leader(marker(7, commit=True), 9, "coordinator")
    before = state_of(closed.log)
    closed.restart(clean=clean)
    assert len(looked_at) >= len(closed.log.segments)
    found = state_of(closed.log)
    assert found["producers"] == before["producers"]
    assert found["bytes"] == before["bytes"]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", "leader-epoch-checkpoint"])
def test_lost_file_makes_the_log_look(closed, looked_at, suffix):
    before = state_of(closed.log)
    closed.logs.shutdown(7)
    closed.directory.close()
    closed.files(suffix)[0].unlink()
    closed.start()
    assert looked_at
    assert state_of(closed.log) == before


def apply(log, rng):
    """Do something to the log by chance; return what can be seen of it."""
    what = rng.choice(["append", "read", "read", "truncate", "time", "position", "roll", "delete"])
    offset = rng.randint(log.log_start_offset, log.log_end_offset)
    if what == "append":
        fill(log, rng, 3)
    elif what == "read":
        data = log.read(offset, rng.choice([1, 90, 1 << 20]), min_one_message=rng.random() < 0.5)
        return what, b"".join(data.records), data.first_entry_incomplete
    elif what == "truncate" and rng.random() < 0.3:
        log.truncate_to(offset)
    elif what == "time":
        return what, [log.fetch_offset_by_timestamp(at) for at in TIMES]
    elif what == "position":
        return what, log.position(offset), [segment.size_bytes for segment in log.segments]
    elif what == "roll" and log.segments[-1]:
        log.roll()
    elif what == "delete" and len(log.segments) > 3:
        log.offsets.update_high_watermark(log.log_end_offset)
        log.delete_oldest_segments(1)
    return what, log.log_start_offset, log.log_end_offset, log.size_bytes


@pytest.mark.parametrize("seed", range(SEEDS))
def test_unread_log_behaves_as_one_that_was_looked_at(tmp_path, monkeypatch, seed):
    print(f"seed {seed}")
    rng = random.Random(seed)
    machine = Machine(tmp_path / "one")
    fill(machine.log, rng, rng.randint(1, 40))
    machine.logs.shutdown(7)
    machine.directory.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    machine.start()
    monkeypatch.setattr(files_module, "needs_no_batches", lambda *_: False)
    other = Machine(tmp_path / "two")
    try:
        for step in range(30):
            found = apply(machine.log, random.Random(f"{seed} {step}"))
            assert found == apply(other.log, random.Random(f"{seed} {step}")), f"step {step}"
        assert state_of(machine.log) == state_of(other.log)
        machine.logs.shutdown(7)
        other.logs.shutdown(7)
        assert contents(machine) == contents(other)
    finally:
        machine.directory.close()
        other.directory.close()


@pytest.mark.parametrize("seed", more_seeds)
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_damage_is_found_at_the_start_or_when_the_segment_is_read(closed, caplog, suffix, seed, clean):
    before = state_of(closed.log)
    if clean:
        closed.logs.shutdown(7)
    else:
        closed.logs.checkpoint_offsets()
    closed.directory.close()
    rng = random.Random(f"{suffix} {seed}")
    all_files = closed.files(suffix)
    # After a kill the last segment is recovered, and cut where it is damaged.
    files = [path for path in all_files[: None if clean else -1] if path.stat().st_size]
    print(f"seed {seed}: {damage(rng.choice(files), rng)}")
    with suppress(ApiError):
        closed.start()
        found = state_of(closed.log)
        if suffix != ".log":
            assert found == before
        else:  # records and epochs are handed out as they are
            assert found["offsets"] == before["offsets"]
            assert list(map(len, found["bytes"])) == list(map(len, before["bytes"]))
        return
    assert suffix == ".log"
    assert "is damaged at byte" in caplog.text
    closed.directory.close()
    caplog.clear()
    with pytest.raises(ApiError):  # not cut at the next start either, which is not a clean one
        closed.start()
    assert "is damaged at byte" in caplog.text


def test_more_bytes_than_are_worth_it_make_the_log_look(closed, looked_at, monkeypatch):
    monkeypatch.setattr(sealed_batches, "MAX_TAIL_BYTES", 10)
    closed.restart(clean=True)
    assert len(looked_at) == len(closed.log.segments)


@pytest.mark.parametrize("damaged", ["timestamp", "offset", "empty"])
def test_largest_timestamp_is_never_a_wrong_one(closed, damaged):
    before = [segment.max_timestamp for segment in closed.log.segments]
    closed.logs.shutdown(7)
    closed.directory.close()
    for path in closed.files(".timeindex"):
        content = bytearray(path.read_bytes())
        if damaged == "empty":
            content.clear()
        else:
            content[-10 if damaged == "timestamp" else -1] ^= 1
        path.write_bytes(content)
    closed.start()
    assert [segment.max_timestamp for segment in closed.log.segments] == before


def test_lost_transaction_index_makes_the_log_look(closed):
    """Only the snapshot says then that there were transactions: its producer has a coordinator epoch."""
    closed.log.roll()
    closed.log.append_as_leader(transactional(7, 0), 9)
    closed.log.append_as_leader(marker(7, commit=False), 9, "coordinator")
    before = state_of(closed.log)
    assert before["aborted"]
    assert before["producers"][7][2] is None
    closed.logs.shutdown(7)
    closed.directory.close()
    (lost,) = closed.files(".txnindex")
    lost.unlink()
    closed.start()
    assert state_of(closed.log)["aborted"] == before["aborted"]


@pytest.mark.parametrize("as_view", [True, False])
def test_damaged_batch_is_never_served(tmp_path, caplog, as_view):
    machine = Machine(tmp_path / "broker-1")
    machine.log.update_config(TopicConfig())
    for number in range(400):
        machine.log.append_as_leader(batch(1, b"x" * 900, 1_000_000 + number), 0)
    size = machine.log.read(200, 1, min_one_message=True).size_bytes
    machine.logs.shutdown(7)
    machine.directory.close()
    path = machine.files(".log")[0]
    segment_size = path.stat().st_size
    content = bytearray(path.read_bytes())
    start = content.index((200).to_bytes(8, "big"))
    content[start + 11] ^= 1  # the length of the batch
    path.write_bytes(content)
    machine.start()
    assert machine.log.read(0, 50 * size).size_bytes == 50 * size
    with pytest.raises(ApiError, match=f"{path.name} is damaged at byte \\d+, offset 20[01]"):
        machine.log.read(60, segment_size, as_view=as_view)
    machine.directory.close()
