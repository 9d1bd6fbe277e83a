"""A log on a virtual clock, in memory, in files and on a simulated disk, and batches to put into it."""

import os
from itertools import count

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.log import LogDirectory, PartitionLog, ProducerStateManagerConfig, SimulatedDisk
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch

WALL_START_MS = 1_000_000


@pytest.fixture
def clock():
    return VirtualClock(wall_start_ms=WALL_START_MS)


@pytest.fixture
def read_bytes(monkeypatch):
    """How many bytes were asked of files, one read after the other."""
    read_bytes, real = [], os.pread

    def pread(descriptor, size_bytes, position):
        read_bytes.append(size_bytes)
        return real(descriptor, size_bytes, position)

    monkeypatch.setattr(os, "pread", pread)
    return read_bytes


@pytest.fixture(params=["memory", "files", "simulated"])
def log_directory(request, tmp_path):
    """The directory of the logs, None in memory: every test of a log runs over both."""
    if request.param == "memory":
        yield None
        return
    if request.param == "simulated":
        disk = SimulatedDisk("seed")
        yield LogDirectory(disk.root / "broker-1", "cluster", 1, disk)
        return
    directory = LogDirectory(tmp_path / "broker-1", "cluster", 1)
    yield directory
    directory.close()


@pytest.fixture
def new_storage(log_directory):
    """Return a function that returns what another log is kept in."""
    numbers = count()

    def make():
        if log_directory is None:
            return None
        storage = log_directory.new_log(TopicPartition("topic", next(numbers)))
        storage.create(bytes(16))
        return storage

    return make


@pytest.fixture
def new_log(clock, new_storage):
    def make(*, producer_id_expiration_ms=86_400_000, verification=False, **config):
        return PartitionLog(
            TopicPartition("topic", 0),
            TopicConfig(**config),
            clock,
            producers=ProducerStateManagerConfig(producer_id_expiration_ms, verification),
            storage=new_storage(),
        )

    return make


@pytest.fixture
def log(new_log):
    return new_log()


@pytest.fixture
def batch(clock):
    """Make a batch of `count` records stamped now, or of the given values."""

    def make(count=1, *, timestamp=None, value=b"value", **header):
        at = clock.wall_clock_ms() if timestamp is None else timestamp
        return build_batch([Record(value, timestamp=at) for _ in range(count)], **header)

    return make


@pytest.fixture
def producer_batch(batch):
    """Make a batch of producer 7."""

    def make(sequence, count=1, *, producer_id=7, epoch=0, **header):
        return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **header)

    return make


@pytest.fixture
def is_retry():
    """Append; tell whether the batch was taken for a retry and so did not grow the log."""

    def call(log, batch, leader_epoch=0):
        end_offset = log.log_end_offset
        info = log.append_as_leader(batch, leader_epoch)
        return log.log_end_offset == end_offset and info.last_offset < end_offset

    return call


@pytest.fixture
def error_of():
    """Call and return the error code that it raises."""
    from broker_sim.errors import ApiError

    def call(function, *args, **kwargs):
        with pytest.raises(ApiError) as caught:
            function(*args, **kwargs)
        return caught.value.error_code

    return call
