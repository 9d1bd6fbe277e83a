"""The cost of large batches: work grows with the number of different states, not with the number of records."""

from broker_sim.errors import ErrorCode
from broker_sim.share.partition.acknowledgement import MAX_CHANGES, AcknowledgementBatch, ChangeCount
from tests.broker_sim.share.named_values import ACKNOWLEDGED, AVAILABLE, Offsets, Written, acquired, state_batch

ACCEPT, RELEASE, REJECT = 1, 2, 3
OTHER = "other"
LOCK_MS = 30_000
HUGE = 10**12


def parts(bench):
    """Return the in-flight ranges, split wherever the state changes, with their states."""
    return [(first, last, state.state.name) for batch in bench.records.batches for first, last, state in batch.parts()]


def test_huge_batch_is_split_only_where_states_differ(make_bench):
    bench = make_bench().open(state_batch(0, HUGE, AVAILABLE))
    assert bench.acquire((0, 4)) == [acquired(0, 4, deliveries=2)]
    assert parts(bench) == [(0, 4, "ACQUIRED"), (5, HUGE, "AVAILABLE")]
    assert bench.timer.size() == 1
    assert bench.acknowledge(1, 2, ACCEPT) is None
    assert parts(bench) == [
        (0, 0, "ACQUIRED"), (1, 2, "ACKNOWLEDGED"), (3, 4, "ACQUIRED"), (5, HUGE, "AVAILABLE"),
    ]  # fmt: skip
    bench.timer.advance(LOCK_MS)
    assert bench.offsets == Offsets(start=0, end=HUGE, next_fetch=0)
    bench.partition.log_start_moved(HUGE - 1)
    assert bench.offsets == Offsets(start=HUGE - 1, end=HUGE, next_fetch=HUGE - 1)


def test_records_with_the_same_state_again_are_merged(bench):
    bench.acquire((0, 99))
    for offset in range(10, 20):
        bench.acknowledge(offset, offset, ACCEPT)
    assert parts(bench) == [
        (0, 9, "ACQUIRED"), (10, 19, "ACKNOWLEDGED"), (20, 99, "ACQUIRED"),
    ]  # fmt: skip
    bench.coordinator.fails_with = ErrorCode.NOT_COORDINATOR
    bench.acknowledge(30, 33, ACCEPT, REJECT, ACCEPT, RELEASE)
    assert parts(bench)[2:] == [(20, 99, "ACQUIRED")]
    assert bench.timer.size() == 2
    bench.timer.advance(LOCK_MS)
    assert parts(bench)[2:] == [(20, 99, "AVAILABLE")]


def test_completed_records_before_the_start_offset_are_merged(bench):
    bench.acquire((0, 99))
    bench.acknowledge(0, 5, ACCEPT, REJECT, ACCEPT, REJECT, ACCEPT, REJECT)
    assert bench.offsets == Offsets(start=6, end=99, next_fetch=100)
    assert [(first, last) for first, last, _ in parts(bench)] == [(0, 5), (6, 99)]


def test_adjacent_acknowledgements_of_one_type_are_one_change(make_bench):
    end = MAX_CHANGES + 200
    batches = ((0, end - 51), (end - 50, end + 49), (end + 50, end + 149))
    bench = make_bench().open(*(state_batch(first, last, AVAILABLE) for first, last in batches))
    bench.acquire(*batches, max_records=2 * end)
    batches = [AcknowledgementBatch(offset, offset, [ACCEPT]) for offset in range(50, end)]
    assert bench.acknowledge_all(*batches) is None
    assert bench.last_written == Written(0, [state_batch(50, end - 1, ACKNOWLEDGED, deliveries=2)])
    # As in Kafka, an in-flight batch whose records are acknowledged one by one stays split.
    assert [batch.batch_state is None for batch in bench.records.batches] == [True, True, False]


def test_adjacent_acknowledgements_fail_where_nothing_is_in_flight(bench):
    """An acknowledged range may contain a natural gap, but not consist of one."""
    bench.acquire((0, 4))
    bench.acquire((6, 9))
    batches = [AcknowledgementBatch(offset, offset, [ACCEPT]) for offset in range(10)]
    assert bench.acknowledge_all(*batches) == ErrorCode.INVALID_REQUEST
    batches[4:6] = [AcknowledgementBatch(4, 6, [ACCEPT])]
    del batches[5]
    assert bench.acknowledge_all(*batches) is None
    assert bench.offsets == Offsets(start=10, end=10, next_fetch=10)


def test_request_with_too_many_changes_fails_and_is_rolled_back(bench):
    count = MAX_CHANGES + 1
    bench.acquire((0, count))
    types = [ACCEPT if offset % 2 else REJECT for offset in range(count)]
    assert bench.acknowledge(0, count - 1, *types) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert parts(bench) == [(0, count, "ACQUIRED")]
    assert bench.records.delivery_complete_count == 0
    assert bench.coordinator.written == []
    changes = ChangeCount()
    batch = AcknowledgementBatch(0, count - 2, types[:-1])
    assert bench.acknowledge_all(batch, changes=changes) is None
    # The request's changes to other partitions count, too.
    batch = AcknowledgementBatch(count, count, [ACCEPT])
    assert bench.acknowledge_all(batch, changes=changes) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_waiting_fetch_gets_the_first_record_when_a_split_batch_expires(bench):
    """As in Kafka, where each record of the batch has its own lock, and fetches are retried after each."""
    bench.acquire((0, 9))
    bench.acknowledge(0, 1, ACCEPT)
    acquisitions = []

    def fetch():
        if len(acquisitions) < 2:
            acquisitions.append(bench.acquire((0, 9), member=OTHER))
            return 1
        return 0

    bench.on_woken = fetch
    bench.timer.advance(LOCK_MS)
    assert acquisitions == [[acquired(2, 2, deliveries=2)], [acquired(3, 3, deliveries=2)]]
    assert parts(bench)[-1] == (4, 9, "AVAILABLE")
    assert bench.partition.lock_timeouts == 8
    # Once when the start offset moved, then for two records, for the third, and for the rest.
    assert len(bench.woken) == 5


def test_failed_release_does_not_restore_records_before_the_log_start(bench):
    bench.acquire((0, 9))
    bench.acknowledge(9, 9, ACCEPT)
    bench.coordinator.is_held = True
    bench.acknowledge(2, 7, RELEASE)
    bench.partition.log_start_moved(5)
    bench.coordinator.release(ErrorCode.NOT_COORDINATOR)
    assert parts(bench) == [
        (0, 1, "ACQUIRED"), (2, 4, "ARCHIVED"), (5, 8, "ACQUIRED"), (9, 9, "ACKNOWLEDGED"),
    ]  # fmt: skip
