"""What `broker-sim top` shows, made of two answers of the control port's `/purgatory` and `/groups`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from broker_sim.cli.group_tables import groups_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

__all__ = ["render"]

HOTTEST_KEYS = 10
BUCKETS = 20
HEIGHTS = " ▁▂▃▄▅▆▇█"
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


def render(
    now: Mapping[str, Any], before: Mapping[str, Any] | None, elapsed_s: float
) -> RenderableType:
    """Return the picture: figures per purgatory, the wheels, the hottest keys, groups if there are any.

    Rates are the change since `before`, per second.
    """
    purgatories = list(_purgatories(now))
    earlier = {} if before is None else {each[:2]: each for each in _purgatories(before)}
    groups = now.get("groups")
    return Group(
        _figures(purgatories, earlier, elapsed_s),
        _wheels(purgatories),
        _keys(purgatories),
        *([groups_table(groups)] if groups else []),
    )


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


def _wheels(purgatories: Sequence[_Purgatory]) -> Table:
    """Return a line per level of a wheel that holds something; a character is a bucket."""
    table = _table("wheels", "broker", "purgatory", "level", "buckets 0 to 19")
    table.add_column("parked", justify="right")
    for each in purgatories:
        levels: dict[int, Counter[int]] = {}
        for operation in each.parked:
            level = levels.setdefault(operation["wheel_level"], Counter())
            level[operation["wheel_bucket"]] += 1
        for number, buckets in sorted(levels.items()):
            table.add_row(
                str(each.broker_id),
                each.name,
                str(number),
                f"[cyan on grey15]{_bars(buckets)}[/]",
                str(buckets.total()),
            )
    return table


def _bars(buckets: Counter[int]) -> str:
    """Return a character per bucket; its height is relative to the fullest bucket."""
    most = max(buckets.values())
    return "".join(HEIGHTS[-(-buckets[index] * 8 // most)] for index in range(BUCKETS))


def _keys(purgatories: Sequence[_Purgatory]) -> Table:
    counts = Counter(
        (each.broker_id, each.name, key)
        for each in purgatories
        for operation in each.parked
        for key in operation["keys"]
    )
    table = _table("hottest keys", "broker", "purgatory", "key")
    table.add_column("operations", justify="right")
    hottest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:HOTTEST_KEYS]
    for (broker_id, name, key), count in hottest:
        table.add_row(str(broker_id), name, key, str(count))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
