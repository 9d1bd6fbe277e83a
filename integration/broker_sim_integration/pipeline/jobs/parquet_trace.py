"""Parquet traces (`broker-sim run --trace FILE.parquet`): events without parsing.

The columns already have the contract's types, so only its rules are checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.jobs.schema import EVENT_SCHEMA, OBSERVATION_SCHEMA, event_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def is_parquet(path: str) -> bool:
    """Whether an input is a Parquet trace, by the end of its name."""
    return path.rstrip("/").endswith(".parquet")


def read_events(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the events of Parquet traces in the form of `parse`; `line` is an event as JSON."""
    try:
        rows = spark.read.parquet(*paths)
    except AnalysisException as error:
        names = ", ".join(paths)
        match error.getCondition():
            case "PATH_NOT_FOUND":
                raise PipelineError(f"no such input: {names}") from error
            case "UNABLE_TO_INFER_SCHEMA":
                raise PipelineError(f"{names}: it contains no complete file yet") from error
        raise
    if differences := _differences(rows.schema):
        raise PipelineError(f"{', '.join(paths)}: not a trace: {', '.join(differences)}")
    read = rows.select(sf.col("_metadata.file_path").alias("source"), sf.struct(*EVENT_SCHEMA.names).alias("event"))
    judged = read.withColumn("reason", event_reason())
    fits = sf.col("reason").isNull()
    return judged.select(
        "source",
        sf.when(~fits, sf.to_json("event")).alias("line"),
        sf.when(fits, "events").otherwise("quarantine").alias("goes_to"),
        "reason",
        sf.when(fits, sf.col("event")).alias("event"),
        sf.lit(None).cast(OBSERVATION_SCHEMA).alias("observation"),
    )


def _differences(schema: StructType) -> list[str]:
    """Return the contract's columns that are missing or have another type."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    return [
        f"{field.name} is {kinds.get(field.name, 'missing')}"
        for field in EVENT_SCHEMA.fields
        if kinds.get(field.name) != field.dataType.simpleString()
    ]
