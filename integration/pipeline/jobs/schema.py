"""The contract of the pipeline's input: trace events and observations, one JSON object a line.

The fields are those of `broker_sim.trace.FIELDS` and of observations.jsonl of the comparison. A line
that does not fit goes, with its reason, to the quarantine; fields beyond the contract are ignored,
so that a newer simulator can add some. A line with `scenario` is an observation.
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

__all__ = [
    "ENDINGS",
    "EVENTS",
    "EVENT_SCHEMA",
    "LINE_SCHEMA",
    "OBSERVATION_SCHEMA",
    "QUARANTINE_SCHEMA",
    "SIDES",
    "TIMINGS",
    "parse",
    "read_values",
]

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

LINE_SCHEMA: Final = StructType(
    [StructField("source", StringType()), StructField("line", StringType())]
)
QUARANTINE_SCHEMA: Final = StructType(
    [
        _required("source", StringType()),
        StructField("line", StringType()),
        _required("reason", StringType()),
        _required("times", LongType()),
    ]
)
"""A line that does not fit, its source, the reason, and how often it occurred."""

_CORRUPT: Final = "_corrupt"
_NOT_ONE_OBJECT: Final = "not one JSON object"
_VARIANT_TYPES: Final[Mapping[str, str]] = {
    "bigint": "^BIGINT$",
    "int": "^BIGINT$",
    "double": "^(BIGINT|DOUBLE|DECIMAL.*)$",
    "string": "",
    "array<string>": "^ARRAY<(STRING|VOID)>$",
}
"""Spark's type of a JSON value, as a pattern, by the contract's type; every value has a text."""


def read_values(lines: DataFrame) -> DataFrame:
    """Return lines of `LINE_SCHEMA` with what their JSON says; each is parsed once.

    Adds `is_observation`, the structs `read_event` and `read_observation`, one of them null, whose
    `value` is what the line says, and whether it `fits` the contract. Filters have to stand behind
    an `observe`, else the optimizer moves them below and parses once more for them.
    """
    return _judged(lines.select("source", "line", *_values()))


def parse(lines: DataFrame) -> DataFrame:
    """Parse lines of `LINE_SCHEMA`; works on batches and streams alike.

    Returns `source`, `line`, `goes_to` (events, observations or quarantine), `reason` (null
    when the line fits) and the structs `event` and `observation`, null where they do not apply.
    """
    # The optimizer copies the expression of a column to every later use, and from_json would run once
    # more for every field. It does not copy the output of a generator.
    once = sf.explode(sf.array(sf.struct(*_values()))).alias("_read")
    read = _judged(lines.select("source", "line", once).select("source", "line", "_read.*"))
    reason = sf.when(
        sf.col("is_observation"),
        _reason("read_observation", OBSERVATION_SCHEMA, _observation_rules()),
    ).otherwise(_reason("read_event", EVENT_SCHEMA, _event_rules()))
    is_observation = sf.col("fits") & sf.col("is_observation")
    is_event = sf.col("fits") & ~sf.col("is_observation")
    goes_to = sf.when(is_event, "events").when(is_observation, "observations")
    return read.select(
        "source",
        "line",
        goes_to.otherwise("quarantine").alias("goes_to"),
        sf.when(~sf.col("fits"), reason).alias("reason"),
        sf.when(is_event, sf.col("read_event.value")).alias("event"),
        sf.when(is_observation, sf.col("read_observation.value")).alias("observation"),
    )


def _judged(read: DataFrame) -> DataFrame:
    """Add whether a line `fits` the contract, from cheap checks alone; never null."""
    is_good = sf.when(
        sf.col("is_observation"),
        _is_good("read_observation", OBSERVATION_SCHEMA, _observation_rules()),
    ).otherwise(_is_good("read_event", EVENT_SCHEMA, _event_rules()))
    return read.withColumn("fits", is_good)


def _values() -> tuple[Column, ...]:
    # An escaped quote is followed by no colon, so the pattern cannot match inside a text.
    found = sf.col("line").contains('"scenario"') & sf.col("line").rlike(r'"scenario"\s*:')
    return (
        found.alias("is_observation"),
        _from_json(sf.when(~found, _enclosed()), EVENT_SCHEMA).alias("read_event"),
        _from_json(sf.when(found, _enclosed()), OBSERVATION_SCHEMA).alias("read_observation"),
    )


def _enclosed() -> Column:
    """Return the line inside an object of its own.

    from_json reads to the end of an object and no further. With more text behind its object, or
    with none, a line does not reach the `end` of this one.
    """
    return sf.concat(sf.lit('{"value":'), sf.col("line"), sf.lit(',"end":1}'))


def _from_json(text: Column, schema: StructType) -> Column:
    enclosing = StructType(
        [
            StructField("value", schema),
            StructField("end", IntegerType()),
            StructField(_CORRUPT, StringType()),
        ]
    )
    return sf.from_json(
        text, enclosing, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    )


def _is_whole(struct: str) -> Column:
    """Return whether the line is JSON of the contract's types, with nothing behind it."""
    return sf.col(f"{struct}.{_CORRUPT}").isNull() & sf.col(f"{struct}.end").isNotNull()


def _is_good(struct: str, schema: StructType, rules: Mapping[str, Column]) -> Column:
    good = _is_whole(struct)
    for field in schema.fields:
        if not field.nullable:
            good &= sf.col(f"{struct}.value.{field.name}").isNotNull()
    for broken in rules.values():
        good &= ~sf.coalesce(broken, sf.lit(False))
    return good


def _reason(struct: str, schema: StructType, rules: Mapping[str, Column]) -> Column:
    """Return why a line does not fit; it costs a second parser."""
    document = sf.try_parse_json(_enclosed())
    value = sf.schema_of_variant(sf.try_variant_get(document, "$.value", "variant"))
    ended = sf.try_variant_get(document, "$.end", "int").isNotNull()
    mistyped = sf.array_compact(
        sf.array(
            *[
                sf.when(~_json_type(document, field.name).rlike(pattern), sf.lit(field.name))
                for field in schema.fields
                if (pattern := _VARIANT_TYPES[field.dataType.simpleString()])
            ]
        )
    )
    missing = [
        sf.when(sf.col(f"{struct}.value.{field.name}").isNull(), sf.lit(f"{field.name} is missing"))
        for field in schema.fields
        if not field.nullable
    ]
    broken = [sf.when(condition, sf.lit(text)) for text, condition in rules.items()]
    return (
        sf.when(
            _is_whole(struct) & sf.col(f"{struct}.value").isNotNull(),
            sf.coalesce(*missing, *broken),
        )
        .when(~sf.coalesce(value.startswith("OBJECT") & ended, sf.lit(False)), _NOT_ONE_OBJECT)
        .when(
            sf.size(mistyped) > 0, sf.concat(sf.array_join(mistyped, ", "), sf.lit(": wrong type"))
        )
        .otherwise("a number is out of range")
    )


def _json_type(document: Column, name: str) -> Column:
    """Return the type of a member; null for one that is absent or null."""
    kind = sf.schema_of_variant(sf.try_variant_get(document, f"$.value.{name}", "variant"))
    return sf.nullif(kind, sf.lit("VOID"))


def _event_rules() -> Mapping[str, Column]:
    event = sf.col("read_event.value.event")
    return {
        "a key is null": sf.exists("read_event.value.keys", lambda key: key.isNull()),
        "unknown side": ~sf.col("read_event.value.side").isin(*SIDES),
        "unknown event": ~event.isin(*EVENTS),
        "ts_ms is not positive": sf.col("read_event.value.ts_ms") <= 0,
        "waited_ms is negative": sf.col("read_event.value.waited_ms") < 0,
        "the end of an operation without waited_ms": event.isin(*ENDINGS)
        & sf.col("read_event.value.waited_ms").isNull(),
        "expired without lateness_ms": (event == "expired")
        & sf.col("read_event.value.lateness_ms").isNull(),
    }


def _observation_rules() -> Mapping[str, Column]:
    return {
        "unknown side": ~sf.col("read_observation.value.side").isin(*SIDES),
        "unknown timing": ~sf.col("read_observation.value.timing").isin(*TIMINGS),
        "elapsed_ms is negative": sf.col("read_observation.value.elapsed_ms") < 0,
    }
