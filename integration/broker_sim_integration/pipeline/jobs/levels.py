"""Levels within buckets of time, computed with whole columns: the part of `occupancy` that runs on executors.

The input is a table of operations, the output one row per series and bucket with a change:

    net          change of the number of parked operations in the bucket
    highest      highest level after a change, if the level at the bucket's start is 0
    risen_area   sum of these levels over the bucket's milliseconds
    first_ms     time of the first change

Only those changes of an operation count that are in the bucket of its row. So it has a row for the bucket in
which it was parked, and one more if it ended in another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PLACE: Final = ("run_id", "side", "broker", "purgatory", "bucket_start_ms")
"""The key of a purgatory in a bucket: all of its rows have to be in one table."""
LEVELS: Final = ("net", "highest", "risen_area", "first_ms")
PIECE_ROWS: Final = 100_000
"""Number of operations processed at once, so that a task's memory does not grow with its size."""
LOWEST: Final = np.iinfo(np.int64).min


def levels_of_batches(batches: Iterable[pa.RecordBatch], bucket_ms: int) -> Iterator[pa.RecordBatch]:
    """Return the levels of a task's batches, which are sorted by bucket; for Spark's `mapInArrow`."""
    for operations in _whole_buckets(batches):
        yield from levels(operations, bucket_ms).to_batches()


def _whole_buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Return tables of complete buckets: with about `PIECE_ROWS` rows, or with one larger bucket."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < PIECE_ROWS:
            continue
        table = pa.Table.from_batches(held)
        starts = table["bucket_start_ms"]
        # The last bucket may continue in the next batch.
        last = pc.index(starts, starts[-1]).as_py()
        if last:
            yield table.slice(0, last)
            held = table.slice(last).to_batches()
            rows -= last
    if rows:
        yield pa.Table.from_batches(held)


def levels(operations: pa.Table, bucket_ms: int) -> pa.Table:
    """Return the levels of operations with `PLACE`, `keys`, parked_at_ms and ended_at_ms (null if open)."""
    count, keys = len(operations), _column(operations, "keys")
    # A row for the whole purgatory (key null), and one for each key.
    row = np.concatenate([np.arange(count), pc.list_parent_indices(keys).to_numpy()])
    key = pa.concat_arrays([pa.nulls(count, pa.string()), pc.list_flatten(keys)])
    place = _numbered([_column(operations, name) for name in PLACE])
    series = place[row] * (len(row) + 1) + _numbered([key])
    start_ms = _column(operations, "bucket_start_ms").to_numpy()[row]
    steps, at_ms, change = [], [], []
    for name, by in (("parked_at_ms", 1), ("ended_at_ms", -1)):
        # An operation that has not ended does not end in its bucket.
        times = pc.fill_null(_column(operations, name), LOWEST).to_numpy()[row]
        inside = np.flatnonzero((start_ms <= times) & (times < start_ms + bucket_ms))
        steps.append(inside)
        at_ms.append(times[inside])
        change.append(np.full(len(inside), by))
    found = _by_series(
        np.concatenate(steps), series, np.concatenate(at_ms), np.concatenate(change), start_ms + bucket_ms
    )
    first = found.pop("step")
    places = operations.select(PLACE).take(row[first])
    return pa.table({name: places[name] for name in PLACE} | {"key": key.take(pa.array(first))} | found)


def _by_series(steps: Any, series: Any, at_ms: Any, change: Any, end_ms: Any) -> dict[str, Any]:
    """Return `LEVELS` of each series, and one of its `steps`; `series` and `end_ms` are indexed by step."""
    order = np.lexsort((at_ms, series[steps]))
    steps, at_ms, change = steps[order], at_ms[order], change[order]
    its_series = series[steps]
    begins_series = np.diff(its_series, prepend=-1) != 0
    begins = np.flatnonzero(begins_series)
    level = np.cumsum(change)
    level -= np.repeat(level[begins] - change[begins], np.diff(begins, append=len(steps)))
    ends_series = np.append(begins_series[1:], True)
    lasted_ms = np.where(ends_series, end_ms[steps], np.append(at_ms[1:], 0)) - at_ms
    # All changes within one millisecond count as one: only the level after the last of them counts.
    reached = np.where(ends_series | (lasted_ms > 0), level, LOWEST)
    return {
        "step": steps[begins],
        "net": np.add.reduceat(change, begins),
        "highest": np.maximum.reduceat(reached, begins),
        "risen_area": np.add.reduceat(level * lasted_ms, begins),
        "first_ms": at_ms[begins],
    }


def _numbered(columns: Sequence[pa.Array]) -> Any:
    """Return a number from 0 for each row: rows with equal values (including nulls) have the same number."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = column.dictionary_encode(null_encoding="encode")
        number = number * (len(code.dictionary) + 1) + code.indices.to_numpy()
        # Numbers stay below the number of rows, so that they never overflow.
        number = np.unique(number, return_inverse=True)[1]
    return number


def _column(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()
