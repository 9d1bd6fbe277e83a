"""Look-ups by mapped indexes: those of a plain list of batches, whatever is damaged in an index file."""

import random
import struct
from itertools import accumulate

import pytest
from broker_sim_purgatory import VirtualClock
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError
from broker_sim.log import LogDirectory, PartitionLog, ProducerStateManagerConfig, SimulatedDisk
from broker_sim.log.storage import MemoryBatches, index_restore
from broker_sim.log.storage.sealed_batches import MAX_RANGES, CheckedRanges
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

UNVERIFIED = ProducerStateManagerConfig(86_400_000, False)
START_MS = 1_000_000


class Model:
    """The batches of a segment as a plain list; every look-up goes through all of them."""

    def __init__(self, batches):
        """`batches` are (records, value bytes, timestamp)."""
        self.data = []
        offset = 0
        for count, value_bytes, timestamp in batches:
            value = b"x" * value_bytes
            data = build_batch([Record(value, timestamp=timestamp) for _ in range(count)])
            offset += count
            self.data.append((data, offset, timestamp))
        self.end_offset = offset
        self.starts = [0, *accumulate(len(data) for data, _, _ in self.data)]

    def number(self, offset):
        return next(n for n, (_, end, _) in enumerate(self.data) if end > offset)

    def position(self, offset):
        return self.starts[self.number(offset)]

    def first_at(self, timestamp):
        starts = [0, *(end for _, end, _ in self.data)]
        found = (n for n, (_, _, at) in enumerate(self.data) if at >= timestamp)
        first = next(found, None)
        return None if first is None else starts[first]

    def upper_bound(self, position, interval_bytes):
        since = 0
        for (data, end, _), start in zip(self.data, self.starts, strict=False):
            if since > interval_bytes:
                since = 0
                if start >= position:
                    return end - 1
            since += len(data)
        return None


def sealed_log(directory, model, interval_bytes, number=0):
    """Return a log whose first segment is closed and has the batches of the model."""
    key = TopicPartition("topic", number)
    storage = directory.new_log(key)
    storage.create(bytes(16))
    config = TopicConfig(index_interval_bytes=interval_bytes)
    clock = VirtualClock(wall_start_ms=START_MS)
    log = PartitionLog(key, config, clock, producers=UNVERIFIED, storage=storage)
    for data, _, _ in model.data:
        log.append_as_leader(data, 0)
    log.offsets.update_high_watermark(log.log_end_offset)
    log.roll()
    assert log.segments[0].uses_index_files
    return log


def assert_answers_as(log, model, interval_bytes, offsets, timestamps):
    segment = log.segments[0]
    for offset in offsets:
        number = model.number(offset)
        assert log.position(offset) == model.starts[number]
        found = log.read(offset, 1, min_one_message=True)
        assert len(b"".join(found.records)) == len(model.data[number][0])
        assert bytes(b"".join(found.records))[61:] == bytes(model.data[number][0])[61:]
        for size in (0, 150, 700):
            expected = model.upper_bound(model.starts[number] + size, interval_bytes)
            assert segment.fetch_upper_bound_offset(offset, size) == expected
    for timestamp in timestamps:
        found = log.fetch_offset_by_timestamp(timestamp)
        assert (None if found is None else found.offset) == model.first_at(timestamp)
    newest = max(at for _, _, at in model.data)
    assert log.fetch_offset_by_timestamp(-3).offset == model.first_at(newest)


batches_of_a_segment = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 200), st.integers(START_MS - 50, START_MS + 50)),
    min_size=1,
    max_size=60,
)


@pytest.fixture(scope="module")
def disk():
    return SimulatedDisk("seed")


@settings(max_examples=60, deadline=None, print_blob=True)
@given(batches_of_a_segment, st.sampled_from([0, 1, 100, 300, 1_000, 5_000]))
def test_look_ups_are_those_of_a_list(disk, batches, interval_bytes):
    number = len(list(disk.root.iterdir()))
    directory = LogDirectory(disk.root / f"broker-{number}", "cluster", 1, disk)
    model = Model(batches)
    log = sealed_log(directory, model, interval_bytes)
    every_offset = range(model.end_offset)
    assert_answers_as(log, model, interval_bytes, every_offset, range(START_MS - 51, START_MS + 52))
    directory.close()


INTERVAL_BYTES = 150


@pytest.fixture
def damaged_model():
    rng = random.Random(5)
    times = [START_MS + n * 3 + rng.choice([0, 0, 0, 7, -7]) for n in range(24)]
    return Model([(rng.randint(1, 3), rng.randint(0, 60), at) for at in times])


@pytest.fixture
def directory(tmp_path):
    directory = LogDirectory(tmp_path / "broker-1", "cluster", 1)
    yield directory
    directory.close()


def index_path(log, suffix):
    return log.storage.directory / f"{0:020d}{suffix}"


def rewrite(log, path, content):
    """Replace a file behind the log's back, in place: its map sees it."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
    log.storage._files.close(path)


def assert_survives(log, model, path, caplog, why):
    caplog.clear()
    times = sorted({at + more for _, _, at in model.data for more in (0, 1)})
    assert_answers_as(log, model, INTERVAL_BYTES, range(model.end_offset), times)
    assert f"index_rebuilt file='{path}'" in caplog.text, why
    assert "log_offline" not in caplog.text


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_flipped_bit_in_any_byte_of_an_index_is_detected_and_repaired(directory, damaged_model, caplog, suffix):
    log = sealed_log(directory, damaged_model, INTERVAL_BYTES)
    path = index_path(log, suffix)
    sound = path.read_bytes()
    entry_bytes = 8 if suffix == ".index" else 12
    assert len(sound) > 4 * entry_bytes
    for at in range(len(sound)):
        bit = 7 * (at % 2)
        content = bytearray(sound)
        content[at] ^= 1 << bit
        rewrite(log, path, content)
        assert_survives(log, damaged_model, path, caplog, f"bit {bit} of byte {at}")
        assert f"entry {at // entry_bytes} does not fit" in caplog.text
        assert path.read_bytes() == sound


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("how", ["lost", "torn", "empty", "zeros", "of another segment", "longer"])
def test_index_of_another_segment_is_rebuilt(directory, damaged_model, caplog, monkeypatch, suffix, how):
    monkeypatch.setattr(index_restore, "SHORTEST_GAP_BYTES", 200)
    log = sealed_log(directory, damaged_model, INTERVAL_BYTES)
    path = index_path(log, suffix)
    sound = path.read_bytes()
    other = Model([(2, 30, START_MS + 7 * n) for n in range(24)])
    if how == "lost":
        log.storage._files.close(path)
        path.unlink()
    else:
        content = {
            "torn": sound[:-3],
            "empty": b"",
            "zeros": bytes(len(sound)),
            "of another segment": index_path(sealed_log(directory, other, INTERVAL_BYTES, 1), suffix).read_bytes(),
            "longer": sound + bytes(12 if suffix == ".timeindex" else 8),
        }[how]
        rewrite(log, path, content)
    assert_survives(log, damaged_model, path, caplog, how)
    assert path.read_bytes() == sound


def test_one_look_up_finds_the_entry_that_misled_it(directory, damaged_model, caplog):
    log = sealed_log(directory, damaged_model, INTERVAL_BYTES)
    path = index_path(log, ".index")
    content = bytearray(path.read_bytes())
    offset, _ = struct.unpack_from(">ii", content, 3 * 8)
    struct.pack_into(">i", content, 3 * 8, offset + 1)
    rewrite(log, path, content)
    assert log.position(offset) == damaged_model.position(offset)
    assert "entry 3 does not fit" in caplog.text


def test_time_entry_of_a_later_batch_with_the_same_time_is_detected(directory, caplog):
    """Batch 5 has the time of the entry too, and batch 4 between has a newer one."""
    times = [0, 0, 0, 100, 150, 100, 200, 0]
    model = Model([(1, 0, START_MS + at) for at in times])
    log = sealed_log(directory, model, 2 * len(model.data[0][0]))
    path = index_path(log, ".timeindex")
    content = bytearray(path.read_bytes())
    assert struct.unpack_from(">qi", content, 0) == (START_MS + 100, 3)
    struct.pack_into(">qi", content, 0, START_MS + 100, 5)
    rewrite(log, path, content)
    assert log.fetch_offset_by_timestamp(START_MS + 120).offset == 4
    assert "log_offline" not in caplog.text


def test_map_of_a_file_that_was_cut_is_not_read(directory, caplog):
    """To read a map behind the end of its file would end the process."""
    model = Model([(1, 0, START_MS + n) for n in range(6_000)])
    log = sealed_log(directory, model, 0)
    path = index_path(log, ".index")
    sound = path.read_bytes()
    assert len(sound) > 40_000
    assert log.position(5_999) == model.starts[5_999]
    with path.open("r+b") as file:
        file.truncate(8)
    assert log.position(5_999) == model.starts[5_999]
    assert log.position(1) == model.starts[1]
    assert "log_offline" not in caplog.text


def test_damage_between_two_entries_takes_the_log_offline(directory, damaged_model, caplog):
    log = sealed_log(directory, damaged_model, 700)
    path = index_path(log, ".log")
    start = damaged_model.starts[3]
    content = bytearray(path.read_bytes())
    content[start + 7] ^= 1  # the base offset
    path.write_bytes(content)
    with pytest.raises(ApiError, match=rf"{path.name} is damaged at byte \d+, offset \d+"):
        log.read(0, 1, min_one_message=True)
    assert "log_offline" in caplog.text
    assert (log.storage.directory / "closed-and-damaged").exists()


def maps_of(directory):
    return directory.files._maps


def test_maps_are_bounded_and_the_last_used_ones_stay(directory):
    model = Model([(1, 30, START_MS)] * 4)
    logs = [sealed_log(directory, model, 0, number) for number in range(6)]
    directory.files._most_maps = 3
    logs[0].position(2)
    (first,) = maps_of(directory).values()
    for log in logs:
        assert log.position(2) == model.starts[2]
        assert logs[0].position(2) == model.starts[2]
        assert len(maps_of(directory)) <= 3
    used = {path.parent.name for path in maps_of(directory)}
    assert used == {"topic-0", "topic-4", "topic-5"}
    assert not first.closed


@pytest.mark.parametrize("how", ["deleted", "cut", "cleaned", "closed", "log deleted"])
def test_map_is_closed_with_its_file(directory, how):
    model = Model([(1, 30, START_MS + n) for n in range(9)])
    log = sealed_log(directory, model, 0)
    log.fetch_offset_by_timestamp(START_MS + 3)
    maps = list(maps_of(directory).values())
    assert len(maps) == 2
    if how == "deleted":
        log.delete_oldest_segments(1)
    elif how == "cut":
        log.truncate_to(4)
        log.flush()
    elif how == "cleaned":
        cleaned = MemoryBatches(0, 4_096)
        cleaned.append(*model.data[0])
        log.storage.replace_segments([0], cleaned, 0)
    elif how == "closed":
        log.storage.close()
    else:
        log.storage.delete()
    assert all(each.closed for each in maps)
    assert not maps_of(directory)


def test_checked_ranges_are_those_of_a_set():
    for seed in range(200):
        rng = random.Random(seed)
        ranges, known = CheckedRanges(), set()
        for _ in range(30):
            start = rng.randrange(300)
            end = start + rng.randint(1, 40)
            ranges.add(start, end)
            known.update(range(start, end))
            position = rng.randrange(340)
            expected = next(at for at in range(position, 400) if at not in known)
            assert ranges.end_of(position) == expected, f"seed {seed}"


def test_checked_ranges_forget_the_shortest():
    ranges = CheckedRanges()
    for number in range(MAX_RANGES + 10):
        ranges.add(1_000 * number, 1_000 * number + (7 if number == 5 else 500))
    assert len(ranges) == MAX_RANGES
    assert ranges.end_of(5_000) == 5_000
