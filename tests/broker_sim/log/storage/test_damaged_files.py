"""Files with flipped bits and torn ends: what is damaged is cut, rebuilt or refused, and never served.

Each seed damages one random place of one file, after a clean shutdown and after a kill. The log must
then serve a part of what was written, from its start on, or be offline. A batch whose records are damaged
where nothing is verified may be handed out, as by Kafka; then its CRC tells every client.
"""

import random
import shutil
from itertools import accumulate

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.errors import ApiError
from broker_sim.log import LogDirectory, LogDirectoryError, LogManager, ProducerStateManagerConfig
from broker_sim.log.storage.checkpoint_files import read_lines, write_lines
from broker_sim.protocol.record_batch import parse_header, split_batches, verify_crc

from .test_reopened_log import CONFIG, KEY, TOPIC_ID, batch, state_of, write_all_kinds

ROUNDS = 15
UNCHECKED = (*range(8), *range(12, 16))
"""Base offset and leader epoch of a batch: no CRC is over them, in Kafka either."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the directories of a broker that was killed and of one that was shut down, and its state."""
    path = tmp_path_factory.mktemp("written") / "killed"
    directory, logs = open_logs(path)
    log = logs.get_or_create(KEY, TOPIC_ID, CONFIG)
    write_all_kinds(log)
    for number in range(20):
        log.append_as_leader(batch(2, timestamp=1_000_010 + number), 4 + number // 8)
    log.offsets.maybe_increment_high_watermark(log.log_end_offset)
    logs.checkpoint_offsets()
    state = state_of(log)
    closed = path.with_name("closed")
    shutil.copytree(path, path.with_name("copy"))
    logs.shutdown(7)
    directory.close()
    shutil.copytree(path, closed)
    return {"killed": path.with_name("copy"), "closed": closed}, state


def open_logs(path):
    directory = LogDirectory(path, "cluster", 1)
    unverified = ProducerStateManagerConfig(86_400_000, False)
    logs = LogManager(VirtualClock(wall_start_ms=1_000_000), unverified, directories=[directory])
    logs.recover()
    return directory, logs


def damage(path, rng):
    """Flip one bit, or tear the end off, at a random place; return what was done."""
    content = bytearray(path.read_bytes())
    position = rng.randrange(len(content))
    if rng.random() < 0.3:
        if path.suffix == ".log" and position in batch_ends(content):
            position += 1  # a file that ends between two batches looks whole, to Kafka too
        path.write_bytes(content[:position])
        return f"{path.name} is cut at {position} of {len(content)}"
    bit = rng.randrange(8)
    content[position] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {position} of {path.name} is flipped"


def batch_ends(content):
    return {0, *accumulate(len(found) for found in split_batches(bytes(content)))}


def batches_of(log):
    return [
        found
        for segment in log.segments
        for found in split_batches(b"".join(log.read(segment.base_offset, 1 << 20).records))
    ]


def is_valid(found):
    try:
        verify_crc(found, parse_header(found))
    except ApiError:
        return False
    return True


def without_unchecked(found):
    return bytes(byte for at, byte in enumerate(found) if at not in UNCHECKED)


def assert_is_beginning_of(log, state):
    """Check that what the log has is what was written, up to its own end."""
    whole = [bytes(one) for one in split_batches(b"".join(state["bytes"]))]
    found = [bytes(one) for one in batches_of(log)]
    assert len(found) <= len(whole)
    for one, written_one in zip(found, whole, strict=False):
        if is_valid(memoryview(one)):
            assert without_unchecked(one) == without_unchecked(written_one)
    assert log.log_end_offset <= state["offsets"][2]


@pytest.mark.parametrize("how", ["killed", "closed"])
@pytest.mark.parametrize(
    "pattern",
    [
        "topic-0/*.log",
        "topic-0/*.index",
        "topic-0/*.timeindex",
        "topic-0/*.txnindex",
        "topic-0/*.snapshot",
        "topic-0/leader-epoch-checkpoint",
        "topic-0/partition.metadata",
        "*-offset-checkpoint",
        "meta.properties",
    ],
)
def test_damage_is_never_served(written, tmp_path, caplog, pattern, how):
    directories, state = written
    for seed in range(ROUNDS):
        rng = random.Random(f"{pattern} {how} {seed}")
        path = tmp_path / str(seed)
        shutil.copytree(directories[how], path)
        files = [file for file in sorted(path.glob(pattern)) if file.stat().st_size]
        done = damage(rng.choice(files), rng)
        print(f"seed {seed}: {done}")
        caplog.clear()
        if pattern == "meta.properties" and is_refused(path):
            continue
        directory, logs = open_logs(path)
        try:
            check_served(logs, state, caplog, path, pattern)
        finally:
            directory.close()
            shutil.rmtree(path)


def is_refused(path):
    try:
        LogDirectory(path, "cluster", 1).close()
    except LogDirectoryError as error:
        return "meta.properties" in str(error)
    return False


def check_served(logs, state, caplog, path, pattern):
    log = logs.get(KEY, TOPIC_ID)
    if log is None and not logs.offline:  # another id: a log of a topic that this broker does not have
        assert pattern == "topic-0/partition.metadata"
        return
    if log is None:
        assert pattern in {"topic-0/*.log", "topic-0/partition.metadata"}
        assert str(path / "topic-0") in caplog.text
        assert "is damaged at byte" in caplog.text or "partition_metadata_damaged" in caplog.text
        with pytest.raises(ApiError, match="The log of topic-0 is offline"):
            logs.get_or_create(KEY, TOPIC_ID, CONFIG)
        return
    log.update_config(CONFIG)
    assert_is_beginning_of(log, state)
    if pattern == "topic-0/*.log":
        if log.log_end_offset < state["offsets"][2]:
            assert "log_truncated" in caplog.text
            assert not logs.directories[0].clean_shutdown_epoch  # there it is refused, never cut
        for found in batches_of(log):
            offset = parse_header(found).base_offset
            assert is_valid(found) or offset < log.storage.recovery_point
        return
    if pattern.endswith("-checkpoint") and "epoch" not in pattern:
        return  # a flipped digit may delete what it says is deleted, as Kafka's
    found = state_of(log)
    if "epoch" in pattern:
        epochs = found.pop("epochs")
        for start, end in ((0, 6), (6, 12)):
            assert {epoch for epoch, first in epochs if start <= first < end}
        assert found == {name: value for name, value in state.items() if name != "epochs"}
    else:
        assert found == state


def write_epochs(path, entries):
    file = path / "topic-0" / "leader-epoch-checkpoint"
    write_lines(file, (f"{epoch} {start}" for epoch, start in entries))
    return file


def test_checkpoint_truncated_within_its_last_number_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    write_lines(path, ["0 0", "1 17"])
    assert read_lines(path) == ["0 0", "1 17"]
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="is not a complete checkpoint"):
            read_lines(path)


@pytest.mark.parametrize("damage", ["epoch", "offset", "no number", "lost"])
def test_epochs_that_cannot_be_are_made_from_the_batches(written, tmp_path, caplog, damage):
    directories, state = written
    path = tmp_path / "copy"
    shutil.copytree(directories["closed"], path)
    first, (epoch, start), *rest = state["epochs"]
    wrong = {"epoch": (0, start), "offset": (epoch, 0), "no number": ("x", start), "lost": (0, 0)}
    file = write_epochs(path, [first, wrong[damage], *rest])
    if damage == "lost":
        file.unlink()
    directory, logs = open_logs(path)
    assert logs.get(KEY, TOPIC_ID).leader_epoch_cache.entries == state["epochs"]
    assert f"leader_epochs_rebuilt file='{file}'" in caplog.text
    directory.close()


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_epochs_of_recovered_batches_are_added_to_the_file(written, tmp_path, how):
    directories, state = written
    path = tmp_path / "copy"
    shutil.copytree(directories[how], path)
    write_epochs(path, state["epochs"][:-1])
    directory, logs = open_logs(path)
    log = logs.get(KEY, TOPIC_ID)
    recovered = how == "killed"
    assert log.leader_epoch_cache.entries[:-1] == state["epochs"][: -1 if recovered else -2]
    assert log.leader_epoch_cache.latest_epoch == state["epochs"][-1 if recovered else -2].epoch
    directory.close()


@pytest.mark.parametrize("is_lost", [True, False])
def test_flipped_epoch_of_a_batch_counts_only_where_it_must(written, tmp_path, is_lost):
    directories, state = written
    path = tmp_path / "copy"
    shutil.copytree(directories["closed"], path)
    file = path / "topic-0" / f"{0:020d}.log"
    content = bytearray(file.read_bytes())
    flipped = min(batch_ends(content) - {0})
    content[flipped + 15] ^= 0x02
    file.write_bytes(content)
    if is_lost:
        (path / "topic-0" / "leader-epoch-checkpoint").unlink()
    directory, logs = open_logs(path)
    found = logs.get(KEY, TOPIC_ID).leader_epoch_cache.entries
    assert (found == state["epochs"]) != is_lost
    assert list(found) == sorted(set(found))
    assert len({entry.epoch for entry in found}) == len(found)
    directory.close()


@pytest.mark.parametrize("how", ["killed", "closed"])
@pytest.mark.parametrize(("suffix", "entry_bytes"), [(".index", 8), (".timeindex", 12), (".txnindex", 34)])
def test_damaged_index_is_rewritten(written, tmp_path, how, suffix, entry_bytes):
    directories, _ = written
    path = tmp_path / "copy"
    shutil.copytree(directories[how], path)
    damaged = next(file for file in sorted(path.glob(f"topic-0/*{suffix}")) if file.stat().st_size)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1])
    directory, _logs = open_logs(path)
    directory.close()
    assert damaged.stat().st_size % entry_bytes == 0
    if suffix == ".txnindex":
        assert damaged.read_bytes() == content
