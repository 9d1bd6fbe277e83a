"""Searches for a record in batches that take long to unpack: they are done beside the loop.

A lookup that meets such a batch is given up with `SlowSearchError`, and is done again once `run` has
searched the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.log import find_record
from broker_sim.log.validator import QUICK_PACKED_BYTES, QUICK_RECORDS
from broker_sim.protocol.record_batch import CODEC_MASK

if TYPE_CHECKING:
    from broker_sim.log import WantedRecord
    from broker_sim.protocol.record_batch import BatchHeader

__all__ = ["SlowSearchError", "SlowSearches"]


class SlowSearchError(Exception):
    """The batch is to be searched beside the loop before the lookup can end."""


class SlowSearches:
    """The searches of one request. Thread rule: `run` on any thread while nobody else uses this."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[WantedRecord, BatchHeader], bytes | memoryview] = {}
        self._found: dict[tuple[WantedRecord, BatchHeader], tuple[int, int] | ApiError | None] = {}

    @property
    def are_waiting(self) -> bool:
        """Whether `run` has something to do."""
        return bool(self._waiting)

    def search(
        self, header: BatchHeader, batch: bytes | memoryview, wanted: WantedRecord
    ) -> tuple[int, int] | None:
        """Return what `find_record` does. Raises `ApiError`, and `SlowSearchError` if it would take long."""
        is_packed = header.attributes & CODEC_MASK and header.size_bytes > QUICK_PACKED_BYTES
        if header.records_count <= QUICK_RECORDS and not is_packed:
            return find_record(batch, wanted)
        if (wanted, header) not in self._found:
            self._waiting[wanted, header] = batch
            raise SlowSearchError
        found = self._found[wanted, header]
        if isinstance(found, ApiError):
            raise found
        return found

    def run(self) -> None:
        """Do the searches that lookups were given up for."""
        waiting, self._waiting = self._waiting, {}
        for (wanted, header), batch in waiting.items():
            try:
                self._found[wanted, header] = find_record(batch, wanted)
            except ApiError as error:
                self._found[wanted, header] = error
