"""An in-memory log of one coordinator partition, for tests of coordinators."""

from broker_sim.errors import ErrorCode
from broker_sim.protocol.record_batch import rebase


class CoordinatorLog:
    """A `CoordinatorStorage` that commits at once unless `is_held`; `fails_with` is the error of appends."""

    def __init__(self, serde):
        self.records = []
        self.batches = []
        self.is_held = False
        self.fails_with = ErrorCode.NONE
        self._serde = serde
        self._committed = 0
        self._waiting = []

    def append(self, partition, batch, timeout_ms, on_appended, on_done, **checks):
        if self.fails_with:
            on_done(self.fails_with)
            return
        self.batches.append(rebase(memoryview(batch), len(self.records), 0))
        self.records += [record for _, record in self._serde.decode_batch(batch)]
        on_appended(len(self.records) - 1)
        self._wait(on_done)

    def await_committed(self, partition, end_offset, timeout_ms, on_done):
        self._wait(on_done)

    def _wait(self, on_done):
        if self.is_held:
            self._waiting.append(on_done)
        else:
            self._committed = len(self.records)
            on_done(ErrorCode.NONE)

    def release(self, error_code=ErrorCode.NONE):
        """Commit or fail all waiting appends."""
        self.is_held = False
        self._committed = len(self.records)
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(error_code)

    def high_watermark(self, partition):
        return self._committed

    def log_end_offset(self, partition):
        return len(self.records)

    def max_batch_bytes(self, partition):
        return 1_000_000

    def check_append(self, partition):
        return self.fails_with

    def read(self, partition):
        return map(bytes, self.batches)
