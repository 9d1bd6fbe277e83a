"""A share partition whose group has a dead-letter topic (KIP-1191); the test acts as the dead-letter queue."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.share.dead_letters.dead_letter_queue import DELIVERED_TOO_OFTEN, REJECTED
from broker_sim.share.partition.record_state import AcknowledgeType, RecordState
from broker_sim.share.share_state import StateBatch

from .conftest import TOPIC_PARTITION, Bench

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
ARCHIVING, ARCHIVED = RecordState.ARCHIVING, RecordState.ARCHIVED
LIMIT = 2


class Queue:
    """A `DeadLetterQueue` that completes its writes when the test calls `write`."""

    def __init__(self):
        self.letters = []
        self._waiting = []

    def enqueue(self, letters, on_done):
        assert letters.source.topic_partition == TOPIC_PARTITION
        self.letters.append((letters.first_offset, letters.last_offset, letters.delivery_count, letters.cause))
        self._waiting.append(on_done)

    def write(self):
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done()


class DeadLetterBench(Bench):
    """A bench whose group has a dead-letter topic and a limit of two deliveries."""

    def __init__(self):
        self.queue = Queue()
        super().__init__()
        self.configs = {"errors.deadletterqueue.topic.name": "dlq.orders", "share.delivery.count.limit": str(LIMIT)}


@pytest.fixture
def bench():
    return DeadLetterBench()


def written(bench):
    """Return the batches of the last write: first and last offset, state and delivery count."""
    return [tuple(batch) for batch in bench.coordinator.written[-1].state_batches]


def test_rejected_records_are_archived_once_dead_letters_are_written(bench):
    bench.open().acquire((0, 9))
    assert bench.acknowledge(0, 9, REJECT) is None
    assert written(bench) == [(0, 9, ARCHIVING, 1)]
    assert bench.queue.letters == [(0, 9, 1, REJECTED)]
    assert bench.records.delivery_complete_count == 0
    assert bench.records.start_offset == 0
    bench.queue.write()
    assert written(bench) == [(0, 9, ARCHIVED, 1)]
    assert bench.records.start_offset == 10


def test_archiving_records_are_not_delivered_and_hold_the_start_offset(bench):
    bench.open().acquire((0, 9))
    assert bench.acknowledge(0, 3, REJECT) is None
    assert bench.acknowledge(4, 9, ACCEPT) is None
    assert bench.records.start_offset == 0
    assert bench.records.next_fetch_offset() == 10
    assert bench.acquire((0, 9), at=0) == []
    assert bench.records.delivery_complete_count == 6
    bench.queue.write()
    assert bench.records.start_offset == 10


def test_dead_letters_are_enqueued_after_the_state_is_written(bench):
    bench.open().acquire((0, 9))
    bench.coordinator.is_held = True
    assert bench.acknowledge(0, 9, REJECT) == "pending"
    assert bench.queue.letters == []
    bench.coordinator.release()
    assert bench.queue.letters == [(0, 9, 1, REJECTED)]


def test_rejection_whose_write_fails_has_no_dead_letter(bench):
    bench.open().acquire((0, 9))
    bench.coordinator.is_held = True
    bench.acknowledge(0, 9, REJECT)
    bench.coordinator.release(fails_with=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.queue.letters == []
    assert bench.acknowledge(0, 9, REJECT) is None
    assert bench.queue.letters == [(0, 9, 1, REJECTED)]


@pytest.mark.parametrize("leaves", ["releases", "session ends"])
def test_release_at_the_delivery_limit_has_its_own_cause(bench, leaves):
    bench.open()
    for _ in range(LIMIT):
        bench.acquire((0, 4), at=0)
        error = bench.acknowledge(0, 4, RELEASE) if leaves == "releases" else bench.release()
        assert error is None
    assert bench.queue.letters == [(0, 4, LIMIT, DELIVERED_TOO_OFTEN)]


def test_rejection_at_the_delivery_limit_has_cause_rejected(bench):
    bench.open().acquire((0, 4))
    bench.acknowledge(0, 4, RELEASE)
    bench.acquire((0, 4), at=0)
    bench.acknowledge(0, 4, REJECT)
    assert bench.queue.letters == [(0, 4, LIMIT, REJECTED)]


@pytest.mark.parametrize("write", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_lock_expiry_at_the_limit_has_a_dead_letter_even_if_its_write_fails(bench, write):
    bench.open().acquire((0, 4))
    bench.timer.advance(30_000)
    bench.acquire((0, 4), at=0)
    bench.coordinator.fails_with = write
    bench.timer.advance(30_000)
    assert bench.queue.letters == [(0, 4, LIMIT, DELIVERED_TOO_OFTEN)]
    bench.queue.write()
    assert bench.records.start_offset == 5


def test_adjacent_rejections_are_archived_independently(bench):
    bench.open().acquire((0, 9))
    bench.acknowledge(0, 3, REJECT)
    bench.acknowledge(4, 9, REJECT)
    assert bench.queue.letters == [(0, 3, 1, REJECTED), (4, 9, 1, REJECTED)]
    last = bench.queue._waiting.pop()
    bench.queue.write()
    assert bench.records.start_offset == 4
    assert bench.records.batches.first.state_at(4).state is ARCHIVING
    last()
    assert bench.records.start_offset == 10


def test_next_leader_enqueues_dead_letters_again(bench):
    rejected, given_up = StateBatch(0, 4, ARCHIVING, 1), StateBatch(5, 9, ARCHIVING, LIMIT)
    bench.open(rejected, given_up, StateBatch(10, 19, RecordState.AVAILABLE, 1))
    assert bench.queue.letters == [(0, 4, 1, REJECTED), (5, 9, LIMIT, DELIVERED_TOO_OFTEN)]
    bench.queue.write()
    assert bench.records.start_offset == 10


def test_new_log_start_offset_skips_archiving_records(bench):
    bench.open().acquire((0, 9), (10, 19))
    bench.acknowledge(0, 9, REJECT)
    bench.partition.log_start_moved(15)
    bench.queue.write()
    assert bench.records.start_offset == 15
    assert bench.records.delivery_complete_count == 0


@pytest.mark.parametrize("feature", [1, 2])
def test_dead_letters_need_the_feature_and_a_configured_topic(bench, feature):
    bench.share_version = feature
    if feature == 2:
        bench.configs = {"errors.deadletterqueue.topic.name": ""}
    bench.open().acquire((0, 9))
    assert bench.acknowledge(0, 9, REJECT) is None
    assert written(bench) == [(0, 9, ARCHIVED, 1)]
    assert bench.queue.letters == []
