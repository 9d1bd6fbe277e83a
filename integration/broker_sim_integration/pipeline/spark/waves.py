"""Rows that are computed wave by wave, so that a failed or stopped run keeps its finished waves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from broker_sim_integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


def of_code(spark: SparkSession, directory: str, table: str, code: str) -> DataFrame | None:
    """Return the rows of a table that this code has written, or None if there is no table."""
    rows = tables.read_or_none(spark, directory, table, of_versions=True)
    return None if rows is None else rows.where(sf.col("code") == code).drop("code")


def append_missing(
    wave: DataFrame,
    known: DataFrame | None,
    make: Callable[[DataFrame, int], DataFrame],
    directory: str,
    table: str,
    code: str,
) -> int:
    """Append `make(rows, count)` for the rows of the wave that are not known; return their number."""
    missing = tables.without(wave, known)
    count = missing.count()
    if count:
        tables.append(make(missing, count).withColumn("code", sf.lit(code)), directory, table)
    return count
