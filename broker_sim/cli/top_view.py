"""What `broker-sim top` shows, made of two answers of the control port's `/purgatory` and `/groups`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from broker_sim.cli.group_tables import groups_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

__all__ = ["render", "rows_that_fit"]

HOTTEST_KEYS = 10
BUCKETS = 20
HEIGHTS = " ▁▂▃▄▅▆▇█"
LINES_BESIDE_ROWS = 5
"""Of each table: its title, its head and the lines around them."""
LEAST_ROWS = 2
"""What a table shows at least, where it is shown."""
UNKNOWN = "-"
"""Shown for rates at first, when there is nothing to compare with."""


class _Purgatory(NamedTuple):
    """One purgatory of one broker, as the control port describes it."""

    broker_id: int
    name: str
    facts: Mapping[str, Any]

    @property
    def parked(self) -> Sequence[Mapping[str, Any]]:
        parked: Sequence[Mapping[str, Any]] = self.facts["parked"]
        return parked


class _Part(NamedTuple):
    """A table of the picture: how many rows it has, and what makes it with the first of them."""

    rows: int
    table: Callable[[int], Table]


def render(
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    elapsed_s: float,
    height: int | None = None,
) -> RenderableType:
    """Return the picture: figures per purgatory, the hottest keys, the wheels, and groups.

    Rates are the change since `before`, per second. Where `height` lines are too few, tables show the
    first of their rows, purgatories with most parked before others, and the last line says how many rows
    are left out.
    """
    purgatories = list(_purgatories(now))
    earlier = {} if before is None else {each[:2]: each for each in _purgatories(before)}
    keys, levels = _hottest(purgatories), list(_levels(purgatories))
    groups = now.get("groups") or []
    parts = [
        _Part(len(purgatories), lambda rows: _figures(purgatories[:rows], earlier, elapsed_s)),
        _Part(len(keys), lambda rows: _keys(keys[:rows])),
        _Part(len(levels), lambda rows: _wheels(levels[:rows])),
        *([_Part(len(groups), lambda rows: groups_table(groups[:rows]))] if groups else []),
    ]
    counts = [part.rows for part in parts]
    lines = sum(counts) + LINES_BESIDE_ROWS * len(parts) + 1
    if height is None or lines <= height:
        return Group(*(part.table(part.rows) for part in parts), _last_line(0))
    purgatories.sort(key=lambda each: -len(each.parked))
    shown = rows_that_fit(counts, height - 1)
    tables = [part.table(rows) for part, rows in zip(parts, shown, strict=True) if rows]
    return Group(*tables, _last_line(sum(counts) - sum(shown)))


def rows_that_fit(counts: Sequence[int], lines: int) -> list[int]:
    """Return how many rows each table may show in so many lines, 0 for one that has no place.

    Each gets a few while there is room, the first ones before the others; then each in turn gets more.
    """
    shown = [0] * len(counts)
    for index, count in enumerate(counts):
        least = min(count, LEAST_ROWS)
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


def _figures(
    purgatories: Sequence[_Purgatory],
    earlier: Mapping[tuple[int, str], _Purgatory],
    elapsed_s: float,
) -> Table:
    table = _table("purgatories", "broker", "purgatory")
    for column in ("parked", "watched", "completed/s", "expired/s", "oldest"):
        table.add_column(column, justify="right")
    for each in purgatories:
        before = earlier.get(each[:2])
        oldest_ms = max((operation["age_ms"] for operation in each.parked), default=None)
        table.add_row(
            str(each.broker_id),
            each.name,
            str(each.facts["num_delayed"]),
            str(each.facts["watched"]),
            _rate(each, before, "completed", elapsed_s),
            _rate(each, before, "expired", elapsed_s),
            UNKNOWN if oldest_ms is None else f"{oldest_ms} ms",
        )
    return table


def _rate(now: _Purgatory, before: _Purgatory | None, what: str, elapsed_s: float) -> str:
    if before is None or elapsed_s <= 0:
        return UNKNOWN
    # A restarted broker counts from zero again.
    return f"{max(now.facts[what] - before.facts[what], 0) / elapsed_s:.1f}"


class _Level(NamedTuple):
    """A level of the wheel of a purgatory, and how many operations each of its buckets holds."""

    purgatory: _Purgatory
    number: int
    buckets: Counter[int]


def _levels(purgatories: Sequence[_Purgatory]) -> Iterator[_Level]:
    """Yield the levels that hold something."""
    for each in purgatories:
        levels: dict[int, Counter[int]] = {}
        for operation in each.parked:
            level = levels.setdefault(operation["wheel_level"], Counter())
            level[operation["wheel_bucket"]] += 1
        for number, buckets in sorted(levels.items()):
            yield _Level(each, number, buckets)


def _wheels(levels: Sequence[_Level]) -> Table:
    """Return a line per level; a character is a bucket."""
    table = _table("wheels", "broker", "purgatory", "level", "buckets 0 to 19")
    table.add_column("parked", justify="right")
    for (broker_id, name, _), number, buckets in levels:
        table.add_row(
            str(broker_id),
            name,
            str(number),
            f"[cyan on grey15]{_bars(buckets)}[/]",
            str(buckets.total()),
        )
    return table


def _bars(buckets: Counter[int]) -> str:
    """Return a character per bucket; its height is relative to the fullest bucket."""
    most = max(buckets.values())
    return "".join(HEIGHTS[-(-buckets[index] * 8 // most)] for index in range(BUCKETS))


def _hottest(purgatories: Sequence[_Purgatory]) -> list[tuple[tuple[int, str, str], int]]:
    """Return the keys of most operations, with broker and purgatory, and how many."""
    counts = Counter(
        (each.broker_id, each.name, key)
        for each in purgatories
        for operation in each.parked
        for key in operation["keys"]
    )
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:HOTTEST_KEYS]


def _keys(hottest: Sequence[tuple[tuple[int, str, str], int]]) -> Table:
    table = _table("hottest keys", "broker", "purgatory", "key")
    table.add_column("operations", justify="right")
    for (broker_id, name, key), count in hottest:
        table.add_row(str(broker_id), name, key, str(count))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
