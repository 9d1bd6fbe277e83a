"""Tables whose columns are told once: all of them for `broker-sim ctl`, those that fit for `broker-sim top`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

UNKNOWN: Final = "-"

ELLIPSIS: Final = "…"
BETWEEN: Final = ", "
"""Between the names of a list."""
BESIDE_CELL: Final = 2
"""What a column needs beside its cells: a space, and the space between two columns."""
BESIDE_TABLE: Final = 1
LEAST_OF_LONG: Final = 12
"""A long cell is not shortened further for the sake of columns that matter less."""
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
UNITS: Final = ((10 * SECOND_MS, 1, "ms"), (10 * MINUTE_MS, SECOND_MS, "s"), (10 * HOUR_MS, MINUTE_MS, "min"))
"""Limit of an age in ms, the unit in ms below that limit, and the unit's name."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    cell: Callable[[Any], str | Text]
    """Makes the cell of a row."""
    rank: int
    """The columns of low rank are the last ones to be left out of a narrow terminal."""
    is_right: bool = False
    is_long: bool = False
    """Whether its cells may be shortened, or folded where rows may be high."""


def fitted_table(
    title: str, columns: Sequence[Column], rows: Sequence[Any], width: int | None, *, folds: bool = False
) -> Table:
    """Return the columns that fit into the width, by rank; all of them without a width.

    Long cells that have no room are folded into several lines if `folds`, else shortened.
    """
    cells = [[_text(column, row) for row in rows] for column in columns]
    needed = [
        max(cell_len(column.title), *(each.cell_len for each in its), 0)
        for column, its in zip(columns, cells, strict=True)
    ]
    table = empty_table(title)
    shown = []
    for index, given in sorted(_widths(columns, needed, width).items()):
        column = columns[index]
        table.add_column(column.title, justify=_justify(column), no_wrap=not folds, overflow="fold", width=given)
        shown.append(cells[index] if folds else [_shortened(each, given) for each in cells[index]])
    for row in zip(*shown, strict=True):
        table.add_row(*row)
    return table


def _widths(columns: Sequence[Column], needed: Sequence[int], width: int | None) -> dict[int, int]:
    """Return how wide each column is that fits, by its place."""
    if width is None:
        return dict(enumerate(needed))
    left = width - BESIDE_TABLE
    by_rank = sorted(range(len(columns)), key=lambda index: columns[index].rank)
    given: dict[int, int] = {}
    for index in by_rank:
        column, least = columns[index], needed[index]
        if column.is_long:
            least = max(cell_len(column.title), min(least, LEAST_OF_LONG))
        if least + BESIDE_CELL <= left or not given:
            given[index] = least
            left -= least + BESIDE_CELL
    for index in by_rank:
        if index in given:
            more = max(0, min(needed[index] - given[index], left))
            given[index] += more
            left -= more
    return given


def empty_table(title: str) -> Table:
    """Return a table without columns, as all tables look."""
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _justify(column: Column) -> Any:
    return "right" if column.is_right else "left"


def _text(column: Column, row: Any) -> Text:
    """Return the cell; what clients have named is shown as it is, not read as markup."""
    cell = column.cell(row)
    return cell if isinstance(cell, Text) else Text(cell)


def _shortened(text: Text, width: int) -> Text:
    """Return what fits: a list's beginning, or both ends of a name, because names often differ there."""
    if text.cell_len <= width:
        return text
    end = 0 if BETWEEN in text.plain else width // 2
    begin = width - len(ELLIPSIS) - end
    return Text(f"{text.plain[:begin]}{ELLIPSIS}{text.plain[len(text) - end :]}", text.style)


def age_text(age_ms: int) -> str:
    """Return an age in few characters."""
    for below_ms, unit_ms, unit in UNITS:
        if age_ms < below_ms:
            return f"{age_ms // unit_ms} {unit}"
    return f"{age_ms // HOUR_MS} h"


def number_text(number: int | None) -> str:
    """Return a number that may be unknown."""
    return UNKNOWN if number is None else str(number)


def topic_partitions(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the names of partitions as a list."""
    return BETWEEN.join(f"{row['topic']}-{row['partition']}" for row in rows)
