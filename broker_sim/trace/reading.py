"""Reads the events of a trace from JSON lines, compressed lines, or Parquet."""

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
"""A line without any of these does not concern acks=all; skipping it takes a tenth of the time of parsing."""
_ACKS_COLUMNS: Final = ("ts_ms", "run_id", "broker", "purgatory", "operation_id", "event", "keys", "client_id",
                        "waited_ms", "lateness_ms", "error_code")  # fmt: skip
"""The columns that matter for acks=all; the others are not decoded."""
_PARKED: Final = b'"event":"parked"'
"""Marks lines that are skipped too: the operation's line `tried` came before."""


def read_events(path: Path, *, only_acks: bool = False) -> Iterator[Event]:
    """Yield the events of a trace: a file of lines, perhaps compressed, or Parquet.

    `only_acks` skips events that belong neither to acks=all requests nor to followers' fetches. Raises OSError for a
    file that cannot be read, ValueError, with the line, for one that is not a trace, and MissingExtraError for Parquet
    without pyarrow.
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
                    return  # the last line is not completely written yet
                event = None
            if not isinstance(event, dict) or event.keys() < {*FIELDS}:
                raise ValueError(f"{path}, line {number} is not an event of a trace: pass a file written by --trace")
            yield event


def _read_parquet(path: Path, only_acks: bool) -> Iterator[Event]:
    pyarrow = arrow_with("dataset")
    files = sorted(path.glob(f"*{PARQUET}")) if path.is_dir() else [path]
    dataset = pyarrow.dataset.dataset([str(each) for each in files])
    if missing := {*FIELDS} - {*dataset.schema.names}:
        raise ValueError(f"{path} is not a trace: it has no column {min(missing)}")
    is_needed = pyarrow.dataset.field("purgatory").isin(["Produce", "Fetch"]) if only_acks else None
    columns = _ACKS_COLUMNS if only_acks else FIELDS
    for batch in dataset.to_batches(columns=[*columns], filter=is_needed):
        yield from batch.to_pylist()
