"""Tables: Parquet directories in one output directory.

Writing twice with `append_new` has the same result as writing once. Derived tables are replaced completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.spark.counting import Counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

EVENT_PARTITIONS: Final = ("date", "side", "purgatory")
_WRITTEN: Final[WeakKeyDictionary[SparkSession, dict[str, StructType]]] = WeakKeyDictionary()
"""Schemas of the tables that a session has written, by path: to look one up in the files is a job of Spark."""


def read(spark: SparkSession, directory: str, table: str) -> DataFrame:
    """Return a table. Raises PipelineError, with a hint at the job that writes it, where `read_or_none` has none."""
    frame = read_or_none(spark, directory, table)
    if frame is None:
        raise PipelineError(
            f"no table {table} in {directory}, or it is empty: run the job that writes it (docs/operate/pipeline.md)"
        )
    return frame


def read_or_none(spark: SparkSession, directory: str, table: str, *, of_versions: bool = False) -> DataFrame | None:
    """Return a table, or None if it does not exist, or has partitions and not one row.

    With `of_versions` its files may have different columns.
    """
    path = f"{directory}/{table}"
    schema = None if of_versions else _WRITTEN.get(spark, {}).get(path)
    reader = spark.read.option("mergeSchema", of_versions)
    try:
        frame = (reader if schema is None else reader.schema(schema)).parquet(path)
        # A client of Spark Connect looks for the files only when it needs the columns.
        columns = frame.columns
    except AnalysisException as error:
        if error.getCondition() in {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}:
            return None
        raise
    return frame if columns else None


def overwrite(frame: DataFrame, directory: str, table: str, partitions: Sequence[str] = ()) -> DataFrame:
    """Replace a table and return it as written, for this session even if it has partitions and no row."""
    path = f"{directory}/{table}"
    frame.write.mode("overwrite").partitionBy(*partitions).parquet(path)
    _WRITTEN.setdefault(frame.sparkSession, {})[path] = frame.schema
    return read(frame.sparkSession, directory, table)


def append(frame: DataFrame, directory: str, table: str) -> None:
    """Append rows to a table."""
    frame.write.mode("append").parquet(f"{directory}/{table}")


def append_new(
    frame: DataFrame, directory: str, table: str, partitions: Sequence[str] = (), *, gathered: bool = False
) -> int:
    """Append rows that the table does not contain yet; return their number, inside `counting`.

    Before they are written, the rows of a partition are brought together, and large partitions are split: so there
    are few files, and no task writes more than Spark's advisory size, however uneven the partitions. `gathered`
    means that the rows have been brought together already.
    """
    if partitions and not gathered:
        frame = frame.hint("rebalance", *map(sf.col, partitions))
    written = Counted(frame, {"rows": sf.count("*")})
    path = f"{directory}/{table}"
    written.frame.write.mode("append").partitionBy(*partitions).parquet(path)
    count = int(written.counts()["rows"])
    if count:
        _WRITTEN.setdefault(frame.sparkSession, {})[path] = frame.schema
    return count


def without(frame: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return the rows of `frame` that are not in `known`; nulls are equal."""
    if known is None:
        return frame
    left, right = frame.alias("left"), known.select(*frame.columns).alias("right")
    return left.join(right, _same_row(frame), "left_anti")


def _same_row(frame: DataFrame) -> Column:
    """Return the condition that all columns are equal, hashable where none may be null."""
    same = sf.lit(True)
    for field in frame.schema.fields:
        ours, theirs = sf.col(f"left.{field.name}"), sf.col(f"right.{field.name}")
        same &= ours.eqNullSafe(theirs)
    return same
