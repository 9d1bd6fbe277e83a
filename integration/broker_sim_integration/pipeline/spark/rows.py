"""Rows that a Python function computes from rows, on the executors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    RowFunction = Callable[[dict[str, Any]], dict[str, Any]]


def map_rows(frame: DataFrame, function: RowFunction, schema: StructType, tasks: int) -> DataFrame:
    """Return a row of `schema` for each row, computed in `tasks` tasks; each row is returned as soon as it is done."""
    kinds = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return frame.repartition(tasks).mapInArrow(partial(_map_batches, function, kinds), schema)


def _map_batches(
    function: RowFunction, kinds: list[tuple[str, str]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - on the executors

    types = {"bigint": pa.int64(), "boolean": pa.bool_(), "double": pa.float64(), "string": pa.string()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds])
    for batch in batches:
        for row in batch.to_pylist():
            yield pa.RecordBatch.from_pylist([function(row)], schema=schema)
