"""The contract of the pipeline's input: trace events and observations, one JSON object per line.

The fields are those of `broker_sim.trace.FIELDS` and of the comparison's observations.jsonl. A line that does
not fit goes to the quarantine, with the reason; fields beyond the contract are ignored, so that a newer
simulator may add some. A line with `scenario` is an observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

SIDES: Final = ("sim", "kafka")
ENDINGS: Final = ("completed", "expired", "cancelled")
EVENTS: Final = ("tried", "parked", *ENDINGS)
TIMINGS: Final = ("at_once", "at_timeout", "on_event", "untimed")


def _required(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=False)


EVENT_SCHEMA: Final = StructType(
    [
        _required("ts_ms", LongType()),
        _required("run_id", StringType()),
        _required("side", StringType()),
        _required("broker", IntegerType()),
        _required("purgatory", StringType()),
        _required("operation_id", LongType()),
        _required("event", StringType()),
        _required("keys", ArrayType(StringType(), containsNull=False)),
        StructField("api", StringType()),
        StructField("client_id", StringType()),
        _required("delay_ms", LongType()),
        StructField("waited_ms", LongType()),
        StructField("lateness_ms", LongType()),
        StructField("completed_by", StringType()),
        StructField("error_code", IntegerType()),
        _required("watched", LongType()),
        _required("num_delayed", LongType()),
    ]
)
"""One step in the life of a delayed operation; times in ms, `ts_ms` since 1970."""

OBSERVATION_SCHEMA: Final = StructType(
    [
        _required("run_id", StringType()),
        _required("side", StringType()),
        _required("scenario", StringType()),
        _required("repeat", IntegerType()),
        _required("step", StringType()),
        _required("attempt", IntegerType()),
        StructField("error_code", IntegerType()),
        StructField("base_offset", LongType()),
        StructField("high_watermark", LongType()),
        StructField("records", LongType()),
        StructField("bytes", LongType()),
        _required("elapsed_ms", DoubleType()),
        _required("timing", StringType()),
        _required("due_ms", DoubleType()),
        _required("earliest_ms", DoubleType()),
        _required("spread_ms", DoubleType()),
        _required("stalled_ms", DoubleType()),
        StructField("fields", StringType()),
    ]
)
"""One step of a scenario on one side; `fields` is the text of a JSON object."""

LINE_SCHEMA: Final = StructType([StructField("source", StringType()), StructField("line", StringType())])
QUARANTINE_SCHEMA: Final = StructType(
    [
        _required("source", StringType()),
        StructField("line", StringType()),
        _required("reason", StringType()),
        _required("times", LongType()),
    ]
)
"""A line that does not fit, its source, the reason, and the number of its occurrences."""

_CORRUPT: Final = "_corrupt"
_VARIANT_TYPES: Final[Mapping[str, str]] = {
    "bigint": "^BIGINT$",
    "int": "^BIGINT$",
    "double": "^(BIGINT|DOUBLE|DECIMAL.*)$",
    "string": "",
    "array<string>": "^ARRAY<(STRING|VOID)>$",
}
"""Spark's type of a JSON value, as a pattern, by the contract's type; every value has a text."""


def parse(lines: DataFrame) -> DataFrame:
    """Parse lines of `LINE_SCHEMA`; works on batches and streams.

    Return `source`, `line`, `goes_to` (events, observations or quarantine), `reason` (null if the line fits) and
    the structs `event` and `observation`, null where they do not apply.
    """
    marked = lines.withColumn("is_observation", is_observation())
    is_observed = sf.col("is_observation")
    # Each line is parsed once: the parser skips nulls.
    parsed = marked.select(
        "*",
        _from_json(sf.when(~is_observed, sf.col("line")), EVENT_SCHEMA).alias("event"),
        _from_json(sf.when(is_observed, sf.col("line")), OBSERVATION_SCHEMA).alias("observation"),
    )
    reason = sf.when(is_observed, _reason("observation", OBSERVATION_SCHEMA, _observation_rules())).otherwise(
        _reason("event", EVENT_SCHEMA, _event_rules())
    )
    return _judged(parsed.withColumn("reason", _once(reason)), is_observed)


def is_observation() -> Column:
    """Return whether the text `line` is an observation, without parsing it."""
    # An escaped quote is not followed by a colon, so the pattern cannot match inside a text.
    line = sf.col("line")
    return line.contains('"scenario"') & line.rlike(r'"scenario"\s*:')


def _judged(frame: DataFrame, is_observation: Column) -> DataFrame:
    goes_to = (
        sf.when(sf.col("reason").isNotNull(), "quarantine").when(is_observation, "observations").otherwise("events")
    )
    return frame.withColumn("goes_to", goes_to).select(
        "source",
        "line",
        "goes_to",
        "reason",
        sf.when(sf.col("goes_to") == "events", _plain("event", EVENT_SCHEMA)).alias("event"),
        sf.when(sf.col("goes_to") == "observations", _plain("observation", OBSERVATION_SCHEMA)).alias("observation"),
    )


def _once(column: Column) -> Column:
    """Return a column that is computed once per row, however often it is used.

    The optimizer copies the expression of a column to the filters and fields that use it: from_json would run for
    each of them, and planning would take seconds. It does not copy an expression that depends on where it runs, so
    this one includes the partition's number, which is never negative.
    """
    return sf.when(sf.spark_partition_id() >= 0, column)


def _from_json(text: Column, schema: StructType) -> Column:
    with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    return sf.from_json(_once(text), with_corrupt, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT})


def _plain(struct: str, schema: StructType) -> Column:
    return sf.struct(*[sf.col(f"{struct}.{name}") for name in schema.names])


def _reason(struct: str, schema: StructType, rules: Mapping[str, Column]) -> Column:
    """Return the reason why the parsed struct does not fit, or null."""
    return (
        sf.when(~_is_one_object(sf.col("line")), "not one JSON object")
        .when(sf.col(f"{struct}.{_CORRUPT}").isNotNull(), _corruption(schema))
        .otherwise(_broken_rule(struct, schema, rules))
    )


def _is_one_object(line: Column) -> Column:
    """Return whether no text follows the line's object: from_json does not read beyond a `}`.

    A line whose only `}` is its last character is certain. Any other line is put into an array, which then must
    have one element, and into an object: a text that closes one of them does not close both.
    """
    trimmed = sf.rtrim(line)
    sure = sf.instr(line, "}") == sf.length(trimmed)
    in_array = sf.json_array_length(sf.concat(sf.lit("["), line, sf.lit("]"))) == 1
    in_object = sf.try_parse_json(sf.concat(sf.lit('{"line":'), line, sf.lit("}"))).isNotNull()
    return trimmed.endswith("}") & (sure | sf.coalesce(in_array & in_object, sf.lit(False)))


def event_reason() -> Column:
    """Return the reason why the struct `event`, whose types are correct, does not fit, or null."""
    return _once(_broken_rule("event", EVENT_SCHEMA, _event_rules()))


def _broken_rule(struct: str, schema: StructType, rules: Mapping[str, Column]) -> Column:
    missing = [
        sf.when(sf.col(f"{struct}.{field.name}").isNull(), sf.lit(f"{field.name} is missing"))
        for field in schema.fields
        if not field.nullable
    ]
    broken = [sf.when(condition, sf.lit(text)) for text, condition in rules.items()]
    return sf.coalesce(*missing, *broken)


def _corruption(schema: StructType) -> Column:
    """Return the part that from_json could not read; evaluated for corrupt lines only."""
    document = sf.try_parse_json("line")
    mistyped = sf.array_compact(
        sf.array(
            *[
                sf.when(~_json_type(document, field.name).rlike(pattern), sf.lit(field.name))
                for field in schema.fields
                if (pattern := _VARIANT_TYPES[field.dataType.simpleString()])
            ]
        )
    )
    return (
        sf.when(document.isNull(), "not one JSON object")
        .when(sf.size(mistyped) > 0, sf.concat(sf.array_join(mistyped, ", "), sf.lit(": wrong type")))
        .otherwise("a number is out of range")
    )


def _json_type(document: Column, name: str) -> Column:
    """Return the type of a member; null if it is absent or null."""
    kind = sf.schema_of_variant(sf.try_variant_get(document, f"$.{name}", "variant"))
    return sf.nullif(kind, sf.lit("VOID"))


def _event_rules() -> Mapping[str, Column]:
    event = sf.col("event.event")
    return {
        "unknown side": ~sf.col("event.side").isin(*SIDES),
        "unknown event": ~event.isin(*EVENTS),
        # array_contains is false only if no key is null; otherwise nulls are sorted to the front. A function with a
        # lambda would not be compiled.
        "keys: one is null": sf.coalesce(sf.array_contains("event.keys", ""), sf.lit(True))
        & sf.sort_array("event.keys")[0].isNull(),
        "ts_ms is not positive": sf.col("event.ts_ms") <= 0,
        "waited_ms is negative": sf.col("event.waited_ms") < 0,
        "the end of an operation without waited_ms": event.isin(*ENDINGS) & sf.col("event.waited_ms").isNull(),
        "expired without lateness_ms": (event == "expired") & sf.col("event.lateness_ms").isNull(),
    }


def _observation_rules() -> Mapping[str, Column]:
    return {
        "unknown side": ~sf.col("observation.side").isin(*SIDES),
        "unknown timing": ~sf.col("observation.timing").isin(*TIMINGS),
        "elapsed_ms is negative": sf.col("observation.elapsed_ms") < 0,
    }
