"""Rows that are made wave by wave, so that what fails or is stopped keeps what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from broker_sim_integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


def of_code(spark: SparkSession, directory: str, table: str, code: str) -> DataFrame | None:
    """Return what this code has written into a table, None without the table."""
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
    """Append what `make(rows, count)` makes of the rows that are not known; returns how many those are."""
    missing = tables.without(wave, known)
    count = missing.count()
    if count:
        tables.append(make(missing, count).withColumn("code", sf.lit(code)), directory, table)
    return count
