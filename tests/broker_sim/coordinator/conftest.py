"""A partition without a log: the test plays the storage, the replicas and the event loop."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.coordinator.storage import CoordinatorTopic
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.records import GroupRecord, serde
from broker_sim.protocol.compression import CompressionCodec
from tests.broker_sim.broker_contexts import broker_context

MAX_BATCH_BYTES = 1_000


class Storage:
    """The offsets committed by each batch; `commit` replicates them, `fails_with` is the error of appends."""

    def __init__(self):
        self.batches = []
        self.fails_with = ErrorCode.NONE
        self._waiting = []

    def append(self, partition, batch, timeout_ms, on_appended, on_done, **checks):
        if self.fails_with:
            on_done(self.fails_with)
            return
        self.batches.append([record.value.offset for _, record in serde.decode_batch(batch)])
        on_appended(self.log_end_offset(partition) - 1)
        self._waiting.append(on_done)

    def read(self, partition):
        return ()

    def check_append(self, partition):
        return self.fails_with

    def max_batch_bytes(self, partition):
        return MAX_BATCH_BYTES

    def log_end_offset(self, partition):
        return sum(map(len, self.batches))

    def high_watermark(self, partition):
        return 0 if self._waiting else self.log_end_offset(partition)

    def commit(self):
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(ErrorCode.NONE)


class Loop:
    """Callbacks for the next iteration of an event loop, run by `turn`."""

    def __init__(self):
        self.soon = []

    def call_later(self, delay_ms, callback, *args):
        assert delay_ms == 0
        self.soon.append(callback)

    def turn(self):
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


def _commit(offset, partition=0):
    return GroupRecord(
        record_messages.OffsetCommitKey("g", "t", partition), record_messages.OffsetCommitValue(offset, -1, "", 1_000)
    )


@pytest.fixture
def storage():
    return Storage()


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def broker(loop):
    return broker_context(clock=VirtualClock(wall_start_ms=1_000_000), call_later=loop.call_later)


@pytest.fixture
def topic(storage):
    return CoordinatorTopic(
        name="topic",
        storage=storage,
        default_partitions=1,
        serde=serde,
        codec=CompressionCodec.NONE,
        timeout_ms=5_000,
    )


@pytest.fixture
def failed():
    """The calls of `on_failed` and `reload`."""
    return []


@pytest.fixture
def commit():
    """Return a function that creates an offset commit record."""
    return _commit
