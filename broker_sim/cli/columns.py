"""Tables whose columns fit the terminal, for `broker-sim ctl` and `broker-sim top`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

UNKNOWN: Final = "-"

ELLIPSIS: Final = "…"
BETWEEN: Final = ", "
"""Separator of the names in a list."""
BESIDE_CELL: Final = 2
"""Width of a column beside its cells: a space, and the space between two columns."""
BESIDE_TABLE: Final = 1
WIDTH_OF_FILES: Final = 10_000
"""Width for output that is no terminal, in characters: a row is one line, as `grep` expects."""
MIN_LONG_WIDTH: Final = 12
"""Minimum width of a long cell; it is not shortened further to make room for columns of higher rank."""
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
UNITS: Final = ((10 * SECOND_MS, 1, "ms"), (10 * MINUTE_MS, SECOND_MS, "s"), (10 * HOUR_MS, MINUTE_MS, "min"))
"""For each unit of ages: the limit in ms below which it is used, its length in ms, and its name."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    cell: Callable[[Any], str | Text]
    """Returns the cell of a row."""
    rank: int
    """Priority in a narrow terminal; columns of high rank are left out first."""
    is_right: bool = False
    is_long: bool = False
    """Whether cells may be shortened or folded."""


def output() -> Console:
    """Return the console of stdout; without a terminal or `COLUMNS`, a row is one line of any length."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_FILES
    return console


def fitted_table(
    title: str, columns: Sequence[Column], rows: Sequence[Any], width: int | None, *, folds: bool = False
) -> Table:
    """Return a table of the columns that fit into the width, by rank; all columns if `width` is None.

    Long cells that do not fit are folded into several lines if `folds`, otherwise shortened.
    """
    cells = [[_text(column, row) for row in rows] for column in columns]
    needed = [
        max(cell_len(column.title), *(each.cell_len for each in its), 0)
        for column, its in zip(columns, cells, strict=True)
    ]
    table = empty_table(title)
    fitting = []
    for index, column_width in sorted(_widths(columns, needed, width).items()):
        column = columns[index]
        table.add_column(column.title, justify=_justify(column), no_wrap=not folds, overflow="fold", width=column_width)
        fitting.append(cells[index] if folds else [_shortened(each, column_width) for each in cells[index]])
    for row in zip(*fitting, strict=True):
        table.add_row(*row)
    return table


def _widths(columns: Sequence[Column], needed: Sequence[int], width: int | None) -> dict[int, int]:
    """Return the widths of the columns that fit, by index."""
    if width is None:
        return dict(enumerate(needed))
    free_width = width - BESIDE_TABLE
    by_rank = sorted(range(len(columns)), key=lambda index: columns[index].rank)
    widths: dict[int, int] = {}
    for index in by_rank:
        column, least = columns[index], needed[index]
        if column.is_long:
            least = max(cell_len(column.title), min(least, MIN_LONG_WIDTH))
        if least + BESIDE_CELL <= free_width or not widths:
            widths[index] = least
            free_width -= least + BESIDE_CELL
    for index in by_rank:
        if index in widths:
            more = max(0, min(needed[index] - widths[index], free_width))
            widths[index] += more
            free_width -= more
    return widths


def empty_table(title: str) -> Table:
    """Return a table without columns, in the style of all tables."""
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _justify(column: Column) -> Any:
    return "right" if column.is_right else "left"


def _text(column: Column, row: Any) -> Text:
    """Return the cell; names from clients are not parsed as markup."""
    cell = column.cell(row)
    return cell if isinstance(cell, Text) else Text(cell)


def _shortened(text: Text, width: int) -> Text:
    """Return a shortened text: the beginning of a list, or both ends of a name, because names often differ there."""
    if text.cell_len <= width:
        return text
    end = 0 if BETWEEN in text.plain else width // 2
    begin = width - len(ELLIPSIS) - end
    return Text(f"{text.plain[:begin]}{ELLIPSIS}{text.plain[len(text) - end :]}", text.style)


def age_text(age_ms: int) -> str:
    """Return a short text for an age."""
    for below_ms, unit_ms, unit in UNITS:
        if age_ms < below_ms:
            return f"{age_ms // unit_ms} {unit}"
    return f"{age_ms // HOUR_MS} h"


def number_text(number: int | None) -> str:
    """Return the text of a number, `-` if it is unknown."""
    return UNKNOWN if number is None else str(number)


def topic_partitions(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the names of partitions as a list."""
    return BETWEEN.join(f"{row['topic']}-{row['partition']}" for row in rows)
