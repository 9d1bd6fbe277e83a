"""A closed segment on disk keeps no entries in memory, and answers as one in memory does."""

import random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import LogDirectory, PartitionLog, ProducerStateManagerConfig
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker

from .storage.test_reopened_log import Machine

SEEDS = 30
STEPS = 60
KEY = TopicPartition("topic", 0)
UNVERIFIED = ProducerStateManagerConfig(86_400_000, False)


@pytest.fixture
def directory(tmp_path):
    directory = LogDirectory(tmp_path / "broker-1", "cluster", 1)
    yield directory
    directory.close()


def open_log(config, storage=None):
    clock = VirtualClock(wall_start_ms=1_000_000)
    return PartitionLog(KEY, config, clock, producers=UNVERIFIED, storage=storage)


def on_disk(directory, config):
    storage = directory.new_log(KEY)
    storage.create(bytes(16))
    return open_log(config, storage)


def append(log, rng):
    kind = rng.choice(["plain", "plain", "plain", "data", "marker"])
    producer_id = rng.randint(1, 3)
    if kind == "marker":
        marker = build_end_txn_marker(
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            is_commit=rng.random() < 0.3,
            timestamp=1_000_000,
        )
        log.append_as_leader(marker, 0, "coordinator")
        return
    header = {}
    if kind == "data":
        entry = log.producer_state.active_producers.get(producer_id)
        sequence = 0 if entry is None else entry.last_sequence + 1
        header = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        header["is_transactional"] = True
    count, value = rng.randint(1, 3), b"x" * rng.randint(0, 90)
    times = [1_000_000 + rng.randint(0, 300) for _ in range(count)]
    log.append_as_leader(build_batch([Record(value, timestamp=at) for at in times], **header), 0)


def do(log, rng):
    """Do something to the log by chance; return what can be seen of it."""
    what = rng.choice(["append", "append", "read", "read", "aborted", "time", "position"] * 4 + ["cut"])
    offset = rng.randint(log.log_start_offset, log.log_end_offset)
    if what == "append":
        for _ in range(rng.randint(1, 12)):
            append(log, rng)
        log.offsets.update_high_watermark(log.log_end_offset)
    elif what == "read":
        upper = rng.choice([None, rng.randint(offset, log.log_end_offset)])
        how = {"upper_bound_offset": upper, "min_one_message": rng.random() < 0.5}
        data = log.read(offset, rng.choice([1, 90, 700, 1 << 20]), **how)
        return what, b"".join(data.records), data.size_bytes, data.first_entry_incomplete
    elif what == "aborted":
        return what, offset, log.aborted_transactions(offset, rng.choice([1, 90, 700, 5_000]))
    elif what == "time":
        at = rng.choice([-3, 1_000_000 + rng.randint(0, 300)])
        return what, at, log.fetch_offset_by_timestamp(at)
    elif what == "position":
        return what, log.position(offset), log._local_log.base_offset_of_batch(offset)
    else:
        log.truncate_to(offset)
    return what, log.log_end_offset, log.last_stable_offset, log.size_bytes


def indexes(segments):
    return [segment.entries().indexes(()) for segment in segments]


def contents(log):
    return [
        (header, bytes(batch))
        for segment in log.segments
        for header, batch in segment.batches_from(segment.base_offset)
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_log_on_disk_answers_as_one_in_memory(directory, seed):
    rng = random.Random(seed)
    interval_bytes = rng.choice([0, 100, 400, 1 << 16])
    print(f"seed {seed}: index.interval.bytes={interval_bytes}")
    config = TopicConfig(internal_segment_bytes=2_500, index_interval_bytes=interval_bytes)
    disk, memory = on_disk(directory, config), open_log(config)
    for step in range(STEPS):
        found = do(disk, random.Random(f"{seed} {step}"))
        assert found == do(memory, random.Random(f"{seed} {step}")), f"step {step}"
    assert contents(disk) == contents(memory)
    closed, at_close = disk.segments[:-1], memory.segments[:-1]
    assert indexes(closed) == indexes(at_close)


def fill(log, segments, batch_bytes=1_000):
    batch = build_batch([Record(b"x" * batch_bytes, timestamp=1_000_000)])
    count = 0
    while len(log.segments) < segments:
        log.append_as_leader(batch, 0)
        count += 1
    log.offsets.update_high_watermark(log.log_end_offset)
    return count


def entries(log):
    return [len(segment) for segment in log.segments]


def read_all(log):
    offset = 0
    while offset < log.log_end_offset:
        data = log.read(offset, 5_000, min_one_message=True)
        offset += max(1, data.size_bytes // 1_000 - 1)


CONFIG = TopicConfig(internal_segment_bytes=1 << 20)


def test_closed_segments_keep_no_entries(directory):
    log = on_disk(directory, CONFIG)
    batches = fill(log, 6)
    assert batches > 4_000
    assert entries(log) == [0, 0, 0, 0, 0, 1]
    read_all(log)
    assert log.fetch_offset_by_timestamp(1_000_000).offset == 0
    assert entries(log) == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("clean", [True, False])
def test_log_that_was_opened_keeps_no_entries_however_much_is_read(tmp_path, clean):
    machine = Machine(tmp_path / "broker-1")
    machine.log.update_config(CONFIG)
    fill(machine.log, 6)
    machine.log.roll()
    machine.restart(clean=clean)
    log = machine.log
    assert entries(log) == [0] * 7
    read_all(log)
    assert len(contents(log)) > 4_000
    assert entries(log) == [0] * 7
    machine.directory.close()


def test_truncated_segment_reloads_its_entries(directory):
    log = on_disk(directory, CONFIG)
    fill(log, 3)
    in_first = log.segments[1].base_offset - 5
    log.truncate_to(in_first)
    assert entries(log) == [in_first]
    fill(log, 3)
    assert entries(log) == [0, 0, 1]
    assert [header.base_offset for header, _ in contents(log)] == list(range(log.log_end_offset))


def test_restored_index_leaves_no_entries(tmp_path):
    machine = Machine(tmp_path / "broker-1")
    machine.log.update_config(CONFIG)
    machine.log.truncate_fully_and_start_at(0)
    fill(machine.log, 4)
    machine.logs.shutdown(7)
    machine.directory.close()
    written = {path: path.read_bytes() for path in machine.files("index")}
    for path in machine.files(".index"):
        path.unlink()
    machine.start()
    assert entries(machine.log)[:-1] == [0, 0, 0]
    for path in machine.files(".index"):
        assert path.read_bytes() == written[path]
    assert len(machine.files(".index")) == 3
    machine.directory.close()


def test_damage_since_the_start_takes_the_log_offline(directory, caplog):
    log = on_disk(directory, CONFIG)
    fill(log, 2)
    path = directory.path / "topic-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    size = log.read(0, 1, min_one_message=True).size_bytes
    content[3 * size + 8] ^= 1  # the length of the fourth batch
    path.write_bytes(content)
    log.read(4, 1, min_one_message=True)  # another interval of the index
    with pytest.raises(ApiError) as caught:
        log.read(0, 1, min_one_message=True)
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert f"{path.name} is damaged at byte {3 * size}, offset 3" in caplog.text
