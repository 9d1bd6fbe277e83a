"""The events of a trace, read from what the sinks have written: lines, compressed lines, or Parquet."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

from broker_sim.trace.lines import FIELDS
from broker_sim.trace.parquet_sink import PARQUET, arrow_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    Event = Mapping[str, Any]

_ACKS_MARKS: Final = (b'"purgatory":"Produce"', b'"client_id":"replica-')
"""A line without any of these says nothing of acks=all, and is not parsed: that takes a tenth of the time."""
_ACKS_COLUMNS: Final = ("ts_ms", "run_id", "broker", "purgatory", "operation_id", "event", "keys", "client_id",
                        "waited_ms", "lateness_ms", "error_code")  # fmt: skip
"""The columns that tell of acks=all; the others need not be decoded."""
_PARKED: Final = b'"event":"parked"'
"""Nor is a line of that event: it was tried before."""


def read_events(path: Path, *, only_acks: bool = False) -> Iterator[Event]:
    """Yield the events of a trace: of a file of lines, also compressed, or of Parquet.

    With `only_acks` those of acks=all requests and of followers' fetches are enough. Raises OSError for a file that
    cannot be read, ValueError, with the line, for one that is no trace, and MissingExtraError where Parquet is to be
    read without pyarrow.
    """
    if path.is_dir() or path.suffix == PARQUET:
        return _read_parquet(path, only_acks)
    return _read_lines(path, only_acks)


def _read_lines(path: Path, only_acks: bool) -> Iterator[Event]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if only_acks and number > 1 and (_PARKED in line or not any(mark in line for mark in _ACKS_MARKS)):
                continue
            try:
                event = json.loads(line)
            except ValueError:
                if number > 1 and not line.endswith(b"\n"):
                    return  # the program that writes it has not written the rest of its last line
                event = None
            if not isinstance(event, dict) or event.keys() < {*FIELDS}:
                raise ValueError(f"{path}, line {number} is no event of a trace: give a file that --trace has written")
            yield event


def _read_parquet(path: Path, only_acks: bool) -> Iterator[Event]:
    pyarrow = arrow_with("dataset")
    files = sorted(path.glob(f"*{PARQUET}")) if path.is_dir() else [path]
    dataset = pyarrow.dataset.dataset([str(each) for each in files])
    if missing := {*FIELDS} - {*dataset.schema.names}:
        raise ValueError(f"{path} is no trace: it has no column {min(missing)}")
    is_needed = pyarrow.dataset.field("purgatory").isin(["Produce", "Fetch"]) if only_acks else None
    columns = _ACKS_COLUMNS if only_acks else FIELDS
    for batch in dataset.to_batches(columns=[*columns], filter=is_needed):
        yield from batch.to_pylist()
