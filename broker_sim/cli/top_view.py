"""The screen of `broker-sim top`, made from responses of the control port to `/purgatory` and `LISTINGS`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.console import Group
from rich.text import Text

from broker_sim.cli.columns import UNKNOWN, Column, age_text, fitted_table
from broker_sim.cli.group_tables import LISTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

HOTTEST_KEYS = 10
BUCKETS = 20
HEIGHTS = " ▁▂▃▄▅▆▇█"
LINES_BESIDE_ROWS = 5
"""Lines of a table besides its rows: title, head and rules."""
MIN_ROWS = 2
"""Minimum number of rows for a table to be shown."""


class _Purgatory(NamedTuple):
    """One purgatory of one broker, from a response of the control port."""

    broker_id: int
    name: str
    facts: Mapping[str, Any]

    @property
    def parked(self) -> Sequence[Mapping[str, Any]]:
        parked: Sequence[Mapping[str, Any]] = self.facts["parked"]
        return parked


class _Part(NamedTuple):
    """A table of the screen: its number of rows, and a function that makes a table of the first rows."""

    rows: int
    table: Callable[[int], Table]
    is_urgent: bool = False
    """Whether the table has precedence in a small terminal."""


def render(
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    elapsed_s: float,
    height: int | None = None,
    width: int | None = None,
) -> RenderableType:
    """Return the screen: figures per purgatory, the hottest keys, the wheels, groups, transactions, producers.

    Rates are the change since `before`, per second. Idle purgatories are left out. If `height` lines are too few,
    tables show their first rows, purgatories with most parked operations first, and the last line has the number of
    omitted rows; tables with waiting rows have precedence. If `width` is too small, tables omit columns.
    """
    earlier = {} if before is None else {each[:2]: each for each in _purgatories(before)}
    purgatories = [each for each in _purgatories(now) if _is_busy(each, earlier.get(each[:2]))]
    parts = _parts(purgatories, now, earlier, elapsed_s, width)
    counts = [part.rows for part in parts]
    lines = sum(counts) + LINES_BESIDE_ROWS * len(parts) + 1
    if height is None or lines <= height:
        return Group(*(part.table(part.rows) for part in parts), _last_line(0))
    purgatories.sort(key=lambda each: -len(each.parked))
    order = sorted(range(len(parts)), key=lambda index: not parts[index].is_urgent)
    shown = dict(zip(order, rows_that_fit([counts[index] for index in order], height - 1), strict=True))
    tables = [part.table(shown[index]) for index, part in enumerate(parts) if shown[index]]
    return Group(*tables, _last_line(sum(counts) - sum(shown.values())))


def _parts(
    purgatories: list[_Purgatory],
    now: Mapping[str, Any],
    earlier: Mapping[tuple[int, str], _Purgatory],
    elapsed_s: float,
    width: int | None,
) -> list[_Part]:
    """Return the tables from top to bottom; they read `purgatories` only when they are made."""
    figures = _figures(earlier, elapsed_s)

    def part(title: str, columns: Sequence[Column], rows: Sequence[Any], *, is_urgent: bool) -> _Part:
        return _Part(len(rows), lambda count: fitted_table(title, columns, rows[:count], width), is_urgent)

    return [
        part("purgatories", figures, purgatories, is_urgent=True),
        part("hottest keys", HOTTEST, _hottest(purgatories), is_urgent=False),
        part("wheels", WHEELS, list(_levels(purgatories)), is_urgent=False),
        *(
            part(listing.name, listing.columns, rows, is_urgent=any(map(listing.waits, rows)))
            for listing in LISTINGS
            if (rows := listing.sorted(now))
        ),
    ]


def rows_that_fit(counts: Sequence[int], lines: int) -> list[int]:
    """Return how many rows each table may show in `lines` lines, 0 for a table without room.

    First each table gets a few rows while there is room, then each in turn gets more.
    """
    shown = [0] * len(counts)
    for index, count in enumerate(counts):
        least = min(count, MIN_ROWS)
        if least and LINES_BESIDE_ROWS + least <= lines:
            shown[index] = least
            lines -= LINES_BESIDE_ROWS + least
    for index, count in enumerate(counts):
        if shown[index]:
            more = min(count - shown[index], lines)
            shown[index] += more
            lines -= more
    return shown


def _last_line(left_out: int) -> Text:
    return Text(f"{left_out} more rows; q quits" if left_out else "q quits", style="dim")


def _purgatories(answer: Mapping[str, Any]) -> Iterator[_Purgatory]:
    for broker in answer["brokers"]:
        for facts in broker["purgatories"]:
            yield _Purgatory(broker["id"], facts["name"], facts)


def _is_busy(now: _Purgatory, before: _Purgatory | None) -> bool:
    """Whether operations of a purgatory wait, are watched, or have ended since `before`."""
    return bool(now.facts["num_delayed"] or now.facts["watched"]) or (
        before is not None and any(now.facts[what] != before.facts[what] for what in ("completed", "expired"))
    )


def _figures(earlier: Mapping[tuple[int, str], _Purgatory], elapsed_s: float) -> tuple[Column, ...]:
    def rate(each: _Purgatory, what: str) -> str:
        return _rate(each, earlier.get(each[:2]), what, elapsed_s)

    return (
        Column("broker", lambda each: str(each.broker_id), 1),
        Column("purgatory", lambda each: each.name, 0, is_long=True),
        Column("parked", lambda each: str(each.facts["num_delayed"]), 2, is_right=True),
        Column("watched", lambda each: str(each.facts["watched"]), 6, is_right=True),
        Column("completed/s", lambda each: rate(each, "completed"), 4, is_right=True),
        Column("expired/s", lambda each: rate(each, "expired"), 5, is_right=True),
        Column("oldest", _age_of_oldest, 3, is_right=True),
        Column("waits for", _waits_for, 7, is_long=True),
    )


def _oldest(purgatory: _Purgatory) -> Mapping[str, Any] | None:
    return max(purgatory.parked, key=lambda operation: operation["age_ms"], default=None)


def _age_of_oldest(purgatory: _Purgatory) -> str:
    oldest = _oldest(purgatory)
    return UNKNOWN if oldest is None else age_text(oldest["age_ms"])


def _waits_for(purgatory: _Purgatory) -> str:
    """Return what the oldest operation waits for."""
    oldest = _oldest(purgatory)
    return UNKNOWN if oldest is None else str(oldest["waits_for"])


def _rate(now: _Purgatory, before: _Purgatory | None, what: str, elapsed_s: float) -> str:
    if before is None or elapsed_s <= 0:
        return UNKNOWN
    # A restarted broker counts from zero again.
    return f"{max(now.facts[what] - before.facts[what], 0) / elapsed_s:.1f}"


class _Level(NamedTuple):
    """A level of a purgatory's timing wheel, with the number of operations in each bucket."""

    purgatory: _Purgatory
    number: int
    buckets: Counter[int]


def _levels(purgatories: Sequence[_Purgatory]) -> Iterator[_Level]:
    """Yield the levels with operations."""
    for each in purgatories:
        levels: dict[int, Counter[int]] = {}
        for operation in each.parked:
            level = levels.setdefault(operation["wheel_level"], Counter())
            level[operation["wheel_bucket"]] += 1
        for number, buckets in sorted(levels.items()):
            yield _Level(each, number, buckets)


def _bars(buckets: Counter[int]) -> str:
    """Return a character per bucket; its height is relative to the fullest bucket."""
    most = max(buckets.values())
    return "".join(HEIGHTS[-(-buckets[index] * 8 // most)] for index in range(BUCKETS))


WHEELS: Final = (
    Column("broker", lambda level: str(level.purgatory.broker_id), 1),
    Column("purgatory", lambda level: level.purgatory.name, 0, is_long=True),
    Column("level", lambda level: str(level.number), 2),
    Column("buckets 0 to 19", lambda level: Text(_bars(level.buckets), "cyan on grey15"), 4),
    Column("parked", lambda level: str(level.buckets.total()), 3, is_right=True),
)
"""Wheel levels, one per line; each character is a bucket."""


class _HotKey(NamedTuple):
    """A key of a purgatory, with the number of operations that watch it."""

    broker_id: int
    purgatory: str
    key: str
    operations: int


def _hottest(purgatories: Sequence[_Purgatory]) -> list[_HotKey]:
    """Return the keys with the most operations."""
    counts = Counter(
        (each.broker_id, each.name, key)
        for each in purgatories
        for operation in each.parked
        for key in operation["keys"]
    )
    keys = (_HotKey(*place, operations) for place, operations in counts.items())
    return sorted(keys, key=lambda each: (-each.operations, each))[:HOTTEST_KEYS]


HOTTEST: Final = (
    Column("broker", lambda each: str(each.broker_id), 2),
    Column("purgatory", lambda each: each.purgatory, 3),
    Column("key", lambda each: each.key, 0, is_long=True),
    Column("operations", lambda each: str(each.operations), 1, is_right=True),
)
