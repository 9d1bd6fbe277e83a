"""Searches for a record in batches that are slow to decompress: they run on another thread.

A request may search a little on the loop. A lookup that needs more collects the batches and raises
`SlowSearchError`; once `run` has searched them, the lookup is repeated and continues there. So a request
neither blocks the loop nor restarts with each batch, however many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError
from broker_sim.log import find_record
from broker_sim.log.validator import reading_effort

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.log import RecordQuery, TimestampAndOffset
    from broker_sim.log.offset_lookup import Search
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol.record_batch import BatchHeader

    LookUp = Callable[[Search, int], TimestampAndOffset | None]

MAX_BATCHES: Final = 1_000
MAX_BYTES: Final = 1 << 20
"""Maximum size of the batches of a log that are collected before a search, in bytes."""


class SlowSearchError(Exception):
    """Raised by a lookup that needs `SlowSearches.run` before it can be completed."""


class SlowSearches:
    """The searches of one request. Thread rule: `run` on any thread while no other method is called."""

    def __init__(self) -> None:
        self._effort = 0.0
        self._lookups: dict[tuple[TopicPartition, int], _Lookup] = {}

    @property
    def are_waiting(self) -> bool:
        """Whether `run` has something to do."""
        return any(lookup.waiting for lookup in self._lookups.values())

    def look_up(self, key: TopicPartition, leader_epoch: int, look_up: LookUp) -> TimestampAndOffset | None:
        """Return the result of `look_up(search, from_offset)`; earlier offsets have been searched already.

        That holds because a leader never truncates its log within one epoch. Raises `SlowSearchError`, and
        `ApiError` as a search does.
        """
        lookup = self._lookups.setdefault((key, leader_epoch), _Lookup(self._would_take_long))
        query = look_up(lookup.search, lookup.from_offset)
        if lookup.waiting:
            raise SlowSearchError
        return query

    def _would_take_long(self, header: BatchHeader) -> bool:
        """Add a batch to the request's effort; return whether the effort is now too large for the loop."""
        self._effort += reading_effort(header.attributes, header.records_count, header.size_bytes)
        return self._effort > 1

    def run(self) -> None:
        """Search the batches that lookups have collected."""
        for lookup in self._lookups.values():
            lookup.run()


class _Lookup:
    """The lookup in one log."""

    def __init__(self, would_take_long: Callable[[BatchHeader], bool]) -> None:
        self._would_take_long = would_take_long
        self.from_offset = 0
        self.waiting: list[tuple[RecordQuery, BatchHeader, bytes | memoryview]] = []
        self._waiting_bytes = 0
        self._results: dict[tuple[RecordQuery, BatchHeader], tuple[int, int] | ApiError | None] = {}

    def search(self, header: BatchHeader, batch: bytes | memoryview, query: RecordQuery) -> tuple[int, int] | None:
        """Return the result of `find_record`, or None for a batch that is collected for `run`."""
        if (query, header) in self._results:
            result = self._results[query, header]
            if isinstance(result, ApiError):
                raise result
            return result
        if not self.waiting and not self._would_take_long(header):
            return find_record(batch, query)
        self.waiting.append((query, header, batch))
        self._waiting_bytes += header.size_bytes
        if len(self.waiting) >= MAX_BATCHES or self._waiting_bytes >= MAX_BYTES:
            raise SlowSearchError
        return None

    def run(self) -> None:
        """Search the collected batches, up to the first one that has the record."""
        waiting, self.waiting = self.waiting, []
        self._waiting_bytes = 0
        self._results.clear()
        for query, header, batch in waiting:
            self.from_offset = header.base_offset
            result: tuple[int, int] | ApiError | None
            try:
                result = find_record(batch, query)
            except ApiError as error:
                result = error
            self._results[query, header] = result
            if result is not None:
                return
