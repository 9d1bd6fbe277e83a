"""Quick reading of a trace's lines: pyarrow in the executors' Python, a batch of lines at a time.

It takes a line only if `schema.parse` reads the same event from it, and leaves all others to `parse`. So it
may leave an event, but never takes a line that is none:

A. a line begins with `{`, ends with `}`, and has no other brace, no backslash and only ASCII. The reader treats
   the lines as one text, but no string crosses the end of a line, so with these braces each line is one object,
   and each object one line;
B. the reader knows the types of the contract, and rejects other fields, a repeated field, and a number that is
   not an integer of its column's size;
C. the contract's rules hold, checked on whole columns.

The reader rejects a batch as a whole. Then its halves are tried, and their halves, until only the rejected
lines are left, or too many attempts were made.

Spark sends these functions with all their dependencies to the executors, which need no other code of this
project.
"""

from __future__ import annotations

import sys
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as sf
from pyarrow import json as arrow_json
from pyspark import cloudpickle
from pyspark.sql.types import IntegerType, StructField, StructType

from broker_sim_integration.pipeline.jobs.schema import ENDINGS, EVENT_SCHEMA, EVENTS, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

SLOT: Final = "slot"
LONGEST_BYTES: Final = 4_096
"""Length in bytes above which a line is left, so that the size of a batch is bounded."""
MOST_REFUSALS: Final = 64
"""Maximum number of halvings of a batch; a single rejected line takes 14 of them."""
PLAIN: Final = r"^\{[^{}\\]*\}$"
OBJECT_BEGINS: Final = b"{"
OBJECT_ENDS: Final = b"}"
ESCAPE: Final = b"\\"
QUICK_SCHEMA: Final = StructType(
    [*(StructField(field.name, field.dataType) for field in EVENT_SCHEMA), StructField(SLOT, IntegerType())]
)
"""An event, or only the slot of a line that is left."""
ARROW_TYPES: Final = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
}
ARROW_SCHEMA: Final = pa.schema([(field.name, ARROW_TYPES[field.dataType.simpleString()]) for field in EVENT_SCHEMA])
REQUIRED: Final = tuple(field.name for field in EVENT_SCHEMA if not field.nullable)


def quick_events(lines: DataFrame) -> DataFrame:
    """Return the events among lines (`line`, `slot`), and for each line that is left a row with only its slot."""
    fitting = sf.when(sf.octet_length("line") <= LONGEST_BYTES, sf.col("line"))
    return lines.select(fitting.alias("line"), SLOT).mapInArrow(_quick_batches, QUICK_SCHEMA)


def _quick_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        lines, slots = batch.columns
        events, taken = take(lines)
        left = slots.filter(pc.invert(taken))
        nothing = pa.nulls(events.num_rows, pa.int32())
        yield from events.append_column(SLOT, nothing).to_batches()
        if len(left):
            empty = [pa.nulls(len(left), kind) for kind in ARROW_SCHEMA.types]
            yield pa.RecordBatch.from_arrays([*empty, left], [*ARROW_SCHEMA.names, SLOT])


def take(lines: pa.StringArray) -> tuple[pa.Table, pa.BooleanArray]:
    """Return the events among lines, in their order, and whether each line was taken."""
    everything = _plain_whole(lines)
    plain = None if everything else pc.fill_null(_plain(lines), False)
    candidates = lines if everything else lines.filter(plain)
    tables, masks = [ARROW_SCHEMA.empty_table()], []
    refusals = 0
    pieces = [candidates] if len(candidates) else []
    while pieces:
        piece = pieces.pop()
        try:
            table = _read(piece)
        except pa.ArrowInvalid:
            refusals += 1
            if len(piece) == 1 or refusals > MOST_REFUSALS:
                masks.append(pa.array([False] * len(piece), pa.bool_()))
            else:
                middle = len(piece) // 2
                pieces += [piece.slice(middle), piece.slice(0, middle)]
            continue
        fits = _fits(table)
        tables.append(table.filter(fits))
        masks.append(fits)
    judged = pa.concat_arrays(masks) if masks else pa.array([], pa.bool_())
    taken = judged if plain is None else pc.replace_with_mask(plain, plain, judged)
    return pa.concat_tables(tables).combine_chunks(), taken


def _plain_whole(lines: pa.StringArray) -> bool:
    """Return whether all lines fulfil rule A, with a few scans of their bytes as one text."""
    if lines.null_count:
        return False
    text = _joined(lines).to_pybytes()
    return bool(
        text.isascii()
        and ESCAPE not in text
        and text.count(OBJECT_BEGINS) == text.count(OBJECT_ENDS) == len(lines)
        and pc.all(pc.starts_with(lines, "{"), min_count=0).as_py()
        and pc.all(pc.ends_with(lines, "}"), min_count=0).as_py()
    )


def _plain(lines: pa.StringArray) -> pa.BooleanArray:
    """Return whether each line fulfils rule A; null for a null."""
    return pc.and_(pc.string_is_ascii(lines), pc.match_substring_regex(lines, PLAIN))


def _joined(lines: pa.StringArray) -> pa.Buffer:
    """Return all lines as one text."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, "\n")[0].as_buffer()


def _read(lines: pa.StringArray) -> pa.Table:
    """Return the events of lines that fulfil rule A; raise ArrowInvalid if rule B is broken."""
    text = _joined(lines)
    table = arrow_json.read_json(
        pa.BufferReader(text),
        # All in one block, because the reader cuts several blocks in threads of its own.
        arrow_json.ReadOptions(use_threads=False, block_size=text.size + 1),
        arrow_json.ParseOptions(
            explicit_schema=ARROW_SCHEMA, newlines_in_values=False, unexpected_field_behavior="error"
        ),
    )
    if table.num_rows != len(lines):
        raise pa.ArrowInvalid(f"{len(lines)} lines became {table.num_rows} events")
    return table.select(ARROW_SCHEMA.names).combine_chunks()


def _fits(events: pa.Table) -> pa.BooleanArray:
    """Return whether each event fulfils rule C: the rules of `schema.event_reason`."""
    event = events["event"]
    ended = pc.is_in(event, pa.array(ENDINGS))
    late = pc.not_equal(event, "expired")
    rules = [
        *(pc.is_valid(events[name]) for name in REQUIRED),
        pc.is_in(events["side"], pa.array(SIDES)),
        pc.is_in(event, pa.array(EVENTS)),
        _has_no_null(events["keys"].combine_chunks()),
        pc.greater(events["ts_ms"], 0),
        pc.fill_null(pc.greater_equal(events["waited_ms"], 0), True),
        pc.or_(pc.invert(ended), pc.is_valid(events["waited_ms"])),
        pc.or_(late, pc.is_valid(events["lateness_ms"])),
    ]
    return pc.fill_null(reduce(pc.and_kleene, rules), False).combine_chunks()


def _has_no_null(lists: pa.ListArray) -> pa.BooleanArray:
    """Return whether each list has no null element."""
    elements = lists.flatten()
    if not elements.null_count:
        return pc.is_valid(lists)
    with_null = pc.list_parent_indices(lists).filter(pc.is_null(elements))
    return pc.invert(pc.is_in(pa.array(range(len(lists)), with_null.type), with_null))


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
