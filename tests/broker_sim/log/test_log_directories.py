"""Several log directories of one broker: where a new log goes, and logs that move between them."""

import errno

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import DiskOptions, LogDirectory, LogDirectoryError, LogManager, SimulatedDisk
from broker_sim.log.storage import PARTITION_METADATA
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

KEY = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
CONFIG = TopicConfig(internal_segment_bytes=400, index_interval_bytes=100)
A, B = "/a", "/b"


class Machine:
    """A broker with two directories, and the process that has them open."""

    def __init__(self, kind, path, seed="seed"):
        self.disk = SimulatedDisk(f"{seed}", DiskOptions()) if kind == "simulated" else None
        self.root = path if self.disk is None else self.disk.root
        self.kind = kind
        self.clock = VirtualClock(wall_start_ms=1_000_000)
        self.directories = []
        self.logs = None
        self.start()

    def start(self):
        if self.kind != "memory":
            first = LogDirectory(self.root / "a", "cluster", 1, self.disk)
            self.directories = [first, LogDirectory(self.root / "b", "cluster", 1, self.disk, first)]
        if self.directories or self.logs is None:
            self.logs = LogManager(self.clock, directories=self.directories, memory_names=[A, B])
        self.logs.recover()

    def end(self, *, clean=False):
        if clean:
            self.logs.shutdown(7)
        for directory in self.directories:
            directory.close()

    def restart(self, *, clean):
        self.end(clean=clean)
        self.start()

    def create(self, partition=0):
        return self.logs.get_or_create(TopicPartition("topic", partition), TOPIC_ID, CONFIG)

    def place(self, partition=0):
        """Return A or B."""
        path = self.logs.directory_of(TopicPartition("topic", partition))
        return path and path[-2:]

    def move(self, place):
        self.logs.move(KEY, self.logs.names[[A, B].index(place)])

    def names(self):
        return sorted(path.name for place in "ab" for path in (self.root / place).iterdir() if "topic" in path.name)


@pytest.fixture(params=["memory", "files", "simulated"])
def machine(request, tmp_path):
    machine = Machine(request.param, tmp_path)
    yield machine
    machine.end()


@pytest.fixture(params=["files", "simulated"])
def on_disk(request, tmp_path):
    machine = Machine(request.param, tmp_path)
    yield machine
    machine.end()


def batch(value=b"value"):
    return build_batch([Record(value * 10, timestamp=1_000_000)])


def values(log):
    return [bytes(batch) for segment in log.segments for _, batch in segment.batches_from(segment.base_offset)]


def filled(machine, count=20):
    log = machine.create()
    for number in range(count):
        log.append_as_leader(batch(b"%d" % number), 0)
    log.offsets.maybe_increment_high_watermark(count)
    return log


def test_new_log_goes_to_the_directory_with_the_fewest(machine):
    for partition in range(4):
        machine.create(partition)
    assert [machine.place(partition) for partition in range(4)] == [A, B, A, B]
    for partition in (1, 3):
        machine.logs.delete(TopicPartition("topic", partition))
    assert machine.place(1) is None
    machine.create(4)
    assert machine.place(4) == B


def test_preferred_directory_counts_once_and_until_the_process_ends(machine):
    machine.create(1)
    machine.logs.preferred[KEY] = machine.logs.names[0]
    machine.create()
    assert machine.place() == A
    machine.logs.delete(KEY)
    machine.logs.preferred[TopicPartition("topic", 2)] = machine.logs.names[0]
    machine.restart(clean=True)
    machine.create()
    machine.create(2)
    assert [machine.place(), machine.place(2)] == [B, A]


def test_moved_log_has_its_records_and_accepts_more(machine):
    log = filled(machine)
    before = values(log)
    assert len(log.segments) > 1
    machine.move(B)
    assert machine.place() == B
    assert values(log) == before
    log.append_as_leader(batch(b"new"), 0)
    assert (log.log_end_offset, len(values(log))) == (21, 21)
    machine.move(A)
    assert (machine.place(), len(values(log))) == (A, 21)


@pytest.mark.parametrize("clean", [True, False])
def test_moved_log_is_read_again_after_a_restart(machine, clean):
    log = filled(machine)
    values(log)  # its indexes are mapped
    machine.move(B)
    log.append_as_leader(batch(b"new"), 0)
    before = values(log)
    machine.restart(clean=clean)
    log = machine.create()
    assert machine.place() == B
    assert (values(log), log.high_watermark) == (before, 20)


def test_log_start_and_high_watermark_of_a_moved_log_survive_a_kill(machine):
    filled(machine).offsets.maybe_increment_log_start_offset(7)
    machine.logs.checkpoint_offsets()  # the move alone makes the files of both directories out of date
    machine.move(B)
    machine.restart(clean=False)
    log = machine.create()
    assert (log.log_start_offset, log.high_watermark) == (7, 20)


def test_moved_log_survives_a_power_loss(tmp_path):
    machine = Machine("simulated", tmp_path)
    before = values(filled(machine))
    machine.move(B)
    machine.disk.lose_power()
    machine.start()
    assert (values(machine.create()), machine.place()) == (before, B)


@pytest.mark.parametrize("seed", range(8))
def test_moved_files_have_their_name_after_a_power_loss(tmp_path, seed):
    machine = Machine("simulated", tmp_path, seed)
    storage = filled(machine).storage
    target = machine.directories[1].log_path(KEY)
    storage.move_to(target)  # without the checkpoints, which the log manager writes next
    machine.disk.lose_power()
    assert (target / PARTITION_METADATA).exists()


def test_files_of_a_moved_log_are_deleted_with_it(on_disk):
    filled(on_disk)
    on_disk.move(B)
    on_disk.logs.delete(KEY)
    assert all(name.endswith("-delete") for name in on_disk.names())


def test_log_stays_whole_where_it_is_if_the_disk_is_full(tmp_path):
    machine = Machine("simulated", tmp_path)
    log = filled(machine)
    log.flush()
    before = values(log)
    machine.disk.capacity_bytes = machine.disk.used_bytes + 1_000
    with pytest.raises(ApiError) as error:
        machine.move(B)
    assert error.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (machine.place(), values(log), machine.names()) == (A, before, ["topic-0"])
    assert not machine.logs.offline


def test_unfinished_copy_of_an_existing_log_is_deleted_at_the_start(on_disk):
    before = values(filled(on_disk))
    on_disk.end(clean=True)
    (on_disk.root / "b" / f"topic-0.{0:032x}-future").mkdir()
    on_disk.start()
    assert (values(on_disk.create()), on_disk.place(), on_disk.names()) == (before, A, ["topic-0"])


def test_copy_without_its_log_is_the_log(on_disk, monkeypatch):
    before = values(filled(on_disk))
    path = type(on_disk.root)
    rename = path.rename

    def killed(source, target):
        if source.name.endswith("-future"):
            raise OSError(errno.EIO, "killed")
        return rename(source, target)

    monkeypatch.setattr(path, "rename", killed)
    with pytest.raises(ApiError):
        on_disk.move(B)
    monkeypatch.undo()
    on_disk.restart(clean=False)
    assert (values(on_disk.create()), on_disk.place()) == (before, B)


def test_log_in_two_directories_is_refused(on_disk):
    filled(on_disk)
    on_disk.end(clean=True)
    for place in "ab":
        log = on_disk.root / place / "t-1"
        log.mkdir()
        (log / "partition.metadata").write_bytes(b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n")
    with pytest.raises(LogDirectoryError, match="both in"):
        on_disk.start()
