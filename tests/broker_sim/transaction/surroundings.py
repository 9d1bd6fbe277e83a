"""Fakes for the transaction coordinator: its log, timers in virtual time, and requests to leaders."""

import heapq
from types import SimpleNamespace

from broker_sim_purgatory import VirtualClock

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.transaction.records import serde
from broker_sim.transaction.state import TransactionState

RESULT = messages.WriteTxnMarkersResponse


class Log:
    """A `CoordinatorStorage` that commits at once unless `is_held`; `fails_with` is the error of appends."""

    def __init__(self):
        self.batches = {}
        self.is_held = False
        self.fails_with = None
        self.failed_appends = 0
        self.timeouts_ms = []
        self._waiting = []

    def append(self, partition, batch, timeout_ms, on_appended, on_done, **checks):
        if self.fails_with is not None:
            self.failed_appends += 1
            on_done(self.fails_with)
            return
        self.timeouts_ms.append(timeout_ms)
        self.batches.setdefault(partition, []).append(batch)
        on_appended(0)
        if self.is_held:
            self._waiting.append(on_done)
        else:
            on_done(ErrorCode.NONE)

    def end_wait(self, error_code=ErrorCode.NONE):
        """Commit or fail all waiting appends."""
        self.is_held = False
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(error_code)

    def max_batch_bytes(self, partition):
        return 200

    def read(self, partition):
        return iter(self.batches.get(partition, ()))

    def records(self):
        return [
            record
            for partition in sorted(self.batches)
            for batch in self.batches[partition]
            for _, record in serde.decode_batch(batch)
        ]

    def states(self):
        """Return the written states, None for a tombstone."""
        return [record.value and TransactionState(record.value.transaction_status) for record in self.records()]


class Timers:
    """Callbacks in virtual time."""

    def __init__(self):
        self.clock = VirtualClock()
        self._due = []
        self._count = 0

    def call_later(self, delay_ms, callback, *args):
        self._count += 1
        entry = [self.clock.now_ms() + delay_ms, self._count, callback, args]
        heapq.heappush(self._due, entry)
        return SimpleNamespace(cancel=lambda: entry.__setitem__(2, None))

    def advance(self, delay_ms=0):
        end_ms = self.clock.now_ms() + delay_ms
        steps = 0
        while self._due and self._due[0][0] <= end_ms:
            due_ms, _, callback, args = heapq.heappop(self._due)
            if due_ms > self.clock.now_ms():
                self.clock.advance(due_ms - self.clock.now_ms())
            if callback is not None:
                callback(*args)
            steps += 1
            assert steps < 100_000, "time stands still"
        if end_ms > self.clock.now_ms():
            self.clock.advance(end_ms - self.clock.now_ms())


class Call:
    """A WriteTxnMarkers request that a leader has not answered."""

    def __init__(self, broker_id, request, on_response):
        self.broker_id = broker_id
        self.request = request
        self.on_response = on_response

    @property
    def markers(self):
        """Return the markers as (is commit, epoch, partitions)."""
        return [
            (
                marker.transaction_result,
                marker.producer_epoch,
                [(topic.name, *topic.partition_indexes) for topic in marker.topics],
            )
            for marker in self.request.markers
        ]

    def answer(self, error_code=ErrorCode.NONE, **errors):
        """Answer with one error for all partitions, or with the topic's error in `errors`."""
        self.on_response(
            RESULT(
                [
                    RESULT.WritableTxnMarkerResult(
                        marker.producer_id,
                        [
                            RESULT.WritableTxnMarkerTopicResult(
                                topic.name,
                                [
                                    RESULT.WritableTxnMarkerPartitionResult(
                                        partition, errors.get(topic.name, error_code)
                                    )
                                    for partition in topic.partition_indexes
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in self.request.markers
                ]
            )
        )
