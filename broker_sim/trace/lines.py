"""Turns steps in the life of delayed operations into JSON lines, as structlog's renderer would.

A line has all of `FIELDS`; a field that does not apply is null. Lines are made by a template, because structlog
takes several times as long, and the thread that makes lines takes its time from the brokers
(docs/verified/benchmarks.md).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from broker_sim_purgatory import Clock

    from broker_sim.errors import ErrorCode

FIELDS = (
    "ts_ms",
    "run_id",
    "side",
    "broker",
    "purgatory",
    "operation_id",
    "event",
    "keys",
    "api",
    "client_id",
    "delay_ms",
    "waited_ms",
    "lateness_ms",
    "completed_by",
    "error_code",
    "watched",
    "num_delayed",
)
"""The fields of every line, in this order."""

IDS_PER_LIFE = 10**12
"""Added to the operation ids of each further life of a broker, which numbers its operations from 1 again."""

CACHED_TEXTS = 10_000
NOT_ENDED = '"waited_ms":null,"lateness_ms":null,"completed_by":null,"error_code":null'


class PurgatoryLife(NamedTuple):
    """The fields that all lines of a purgatory share, from its broker's start to its end."""

    labels: str
    first_id: int
    wall_clock_offset_ms: int

    @classmethod
    def of(cls, *, run_id: str, side: str, broker_id: int, purgatory: str, number: int, clock: Clock) -> PurgatoryLife:
        """Return the life `number` (from 0) of a broker's purgatory."""
        labels = (
            f'"run_id":{json.dumps(run_id)},"side":{json.dumps(side)},'
            f'"broker":{broker_id},"purgatory":{json.dumps(purgatory)}'
        )
        # Computed once: both readings are rounded down to whole milliseconds, so a later difference may be one
        # # less, and an operation would end before it began.
        wall_clock_offset_ms = clock.wall_clock_ms() - clock.now_ms()
        return cls(labels, number * IDS_PER_LIFE, wall_clock_offset_ms)


# A plain tuple, made for every step in 40 ns; a named tuple takes 240 ns.
Step = tuple[PurgatoryLife, int, str, int, str, "int | None", "int | None", "str | None",
             "ErrorCode | None", int, int]  # fmt: skip
"""The life of the purgatory, now_ms, event, operation_id, operation_fields, waited_ms, lateness_ms,
completed_by, error_code, watched, num_delayed."""


def to_lines(steps: Iterable[Step]) -> list[str]:
    """Return one line for each step, without a line end."""
    return [
        f'{{"ts_ms":{now_ms + life.wall_clock_offset_ms},{life.labels},'
        f'"operation_id":{life.first_id + operation_id},"event":"{event}",{fields},'
        f'{NOT_ENDED if waited_ms is None else _ended(waited_ms, lateness_ms, by, error_code)},'
        f'"watched":{watched},"num_delayed":{num_delayed}}}'
        for (life, now_ms, event, operation_id, fields, waited_ms, lateness_ms, by, error_code,
             watched, num_delayed) in steps
    ]  # fmt: skip


def operation_fields(keys: Collection[object], api: str | None, client_id: str | None, delay_ms: int) -> str:
    """Return the fields that all lines of an operation share, from keys to delay_ms."""
    text = _key_text(next(iter(keys))) if len(keys) == 1 else ",".join(map(_key_text, keys))
    return _fields(text, api, client_id, delay_ms)


def _ended(waited_ms: int, lateness_ms: int | None, by: str | None, error_code: ErrorCode | None) -> str:
    return (
        f'"waited_ms":{waited_ms},"lateness_ms":{"null" if lateness_ms is None else lateness_ms},'
        f'"completed_by":{_text(by)},"error_code":{"null" if error_code is None else int(error_code)}'
    )


@lru_cache(CACHED_TEXTS)
def _fields(keys: str, api: str | None, client_id: str | None, delay_ms: int) -> str:
    return f'"keys":[{keys}],"api":{_text(api)},"client_id":{_text(client_id)},"delay_ms":{delay_ms}'


@lru_cache(CACHED_TEXTS)
def _text(value: str | None) -> str:
    return json.dumps(value)


@lru_cache(CACHED_TEXTS, typed=True)
def _key_text(key: object) -> str:
    return json.dumps(str(key))
