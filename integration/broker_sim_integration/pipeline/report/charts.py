"""The charts of the report, as SVG elements. They take rows and do not need Spark."""

from __future__ import annotations

import io
from collections import defaultdict
from functools import wraps
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import matplotlib as mpl
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SIDE_COLOURS: Final[Mapping[str, str]] = {"sim": "#1f6fb2", "kafka": "#d9741a"}
OTHER_COLOUR: Final = "#5a5a5a"
STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e8ec",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
}
WIDTH_IN: Final = 8.0
"""A wide window enlarges the chart, a narrow one shrinks it; the texts are readable in both."""
PANEL_IN: Final = 1.9
LEGEND_IN: Final = 0.4
COLUMNS: Final = 3
KILO: Final = 1_000
LINE_WIDTHS: Final[Mapping[str, float]] = {"sim": 1.3, "kafka": 3.5}
"""Kafka's line is drawn first and wide: where the sides agree, both are visible."""


P = ParamSpec("P")


def _drawn(name: str) -> Callable[[Callable[P, Figure]], Callable[P, str]]:
    """Return a decorator that turns a function returning a figure into one returning an SVG element.

    `name` becomes part of the ids in it, so that several charts can be on one page.
    """

    def decorate(draw: Callable[P, Figure]) -> Callable[P, str]:
        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> str:
            out = io.StringIO()
            with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
                draw(*args, **kwargs).savefig(out, format="svg", metadata={"Date": None, "Creator": None})
            text = out.getvalue()
            return text[text.index("<svg") :]

        return drawn

    return decorate


def _small_multiples(
    groups: Mapping[str, Sequence[Any]], *, sharex: bool = True
) -> tuple[Figure, dict[tuple[str, Any], Any]]:
    """Return a figure with a panel for each member of each group; each group begins a new row."""
    columns = min(COLUMNS, max(map(len, groups.values())))
    rows = [
        (group, members[first : first + columns])
        for group, members in groups.items()
        for first in range(0, len(members), columns)
    ]
    figure = Figure((WIDTH_IN, PANEL_IN * len(rows) + LEGEND_IN), layout="constrained")
    grid = figure.subplots(len(rows), columns, squeeze=False, sharex=sharex, sharey="row")
    panels: dict[tuple[str, Any], Any] = {}
    for line, (group, members) in zip(grid, rows, strict=True):
        for axes in line[len(members) :]:
            axes.remove()
        panels |= {(group, member): axes for member, axes in zip(members, line, strict=False)}
    return figure, panels


def _name_axes(figure: Figure, panels: Mapping[tuple[str, Any], Any], x: str, y: str) -> None:
    """Label the axes of every panel, and add a legend of the sides below."""
    sides: dict[str, Any] = {}
    for axes in panels.values():
        axes.tick_params(labelbottom=True)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        handles, labels = axes.get_legend_handles_labels()
        sides |= dict(zip(labels, handles, strict=True))
    figure.legend(list(sides.values()), list(sides), loc="outside lower left", ncols=2, frameon=False)


def _side(side: str) -> dict[str, Any]:
    return {"color": SIDE_COLOURS.get(side, OTHER_COLOUR), "linewidth": LINE_WIDTHS.get(side, 1.0), "label": side}


def _counts(axis: Any) -> None:
    """Put ticks at whole numbers only."""
    axis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))


def _milliseconds(axis: Any) -> None:
    """Format 1000 as 1k and not as a power of ten; with all zeros the labels of small panels would touch."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < KILO else f"{value / KILO:,g}k"))
    axis.set_minor_formatter(NullFormatter())


def _grouped(rows: Sequence[Any], *names: str) -> dict[tuple[Any, ...], list[Any]]:
    groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return dict(sorted(groups.items(), key=lambda item: tuple(map(str, item[0]))))


def _cumulative(axes: Any, rows: Sequence[Any], **style: Any) -> None:
    """Draw the share of operations below each value."""
    total = sum(row["operations"] for row in rows)
    shares = [count / total for count in accumulate(row["operations"] for row in rows)]
    values = [row["up_to_ms"] for row in rows]
    axes.step([values[0], *values], [0.0, *shares], where="post", **style)
    axes.set_xscale("symlog", linthresh=1)  # 0 ms has a place on it
    _milliseconds(axes.xaxis)
    axes.set_ylim(0, 1.03)


def _members(rows: Sequence[Any], group: str, member: str) -> dict[str, list[Any]]:
    """Return the values of `member` in each group."""
    return {
        value: [name for (name,) in _grouped(of_group, member)] for (value,), of_group in _grouped(rows, group).items()
    }


@_drawn("waiting")
def waiting(rows: Sequence[Any]) -> Figure:
    """Draw distributions of waiting: rows of purgatory, side, outcome, up_to_ms, operations."""
    figure, panels = _small_multiples(_members(rows, "purgatory", "outcome"))
    for (purgatory, outcome), members in _grouped(rows, "purgatory", "outcome").items():
        axes = panels[purgatory, outcome]
        for (side,), line in _grouped(members, "side").items():
            _cumulative(axes, line, **_side(side))
        count = sum(row["operations"] for row in members)
        axes.set_title(f"{purgatory}, {outcome}: {count:,}")
    _name_axes(figure, panels, "waited, ms", "share of operations")
    return figure


@_drawn("lateness")
def lateness(rows: Sequence[Any]) -> Figure:
    """Draw the sides' lateness per timing: rows of timing, side, up_to_ms, operations."""
    timings = [timing for (timing,) in _grouped(rows, "timing")]
    figure, panels = _small_multiples({"timings": timings})
    for (timing,), members in _grouped(rows, "timing").items():
        axes = panels["timings", timing]
        for (side,), line in _grouped(members, "side").items():
            _cumulative(axes, line, **_side(side))
        axes.set_title(timing.replace("_", " "))
    _name_axes(figure, panels, "late, ms", "share of responses")
    return figure


def _filled(rows: Sequence[Any], bins: int) -> list[int]:
    """Return the peak of each bin; a bin without a row has the closing level of the row before it."""
    by_bin = {row["bin"]: row for row in rows}
    peaks, level = [], 0
    for number in range(bins):
        row = by_bin.get(number)
        peaks.append(level if row is None else row["peak"])
        level = level if row is None else row["closing"]
    return peaks


@_drawn("occupancy")
def occupancy(rows: Sequence[Any], width_ms: int) -> Figure:
    """Draw the level over time: rows of purgatory, side, broker, bin, peak, closing."""
    bins = max(row["bin"] for row in rows) + 1
    times = [number * width_ms / 1000 for number in range(bins)]
    figure, panels = _small_multiples(_members(rows, "purgatory", "broker"))
    for (purgatory, broker), members in _grouped(rows, "purgatory", "broker").items():
        axes = panels[purgatory, broker]
        for (side,), line in _grouped(members, "side").items():
            axes.step(times, _filled(line, bins), where="post", **_side(side))
        axes.set_ylim(bottom=0)
        _counts(axes.yaxis)
        axes.set_title(f"{purgatory}, broker {broker}")
    _name_axes(figure, panels, "seconds since the first event", "parked")
    return figure


@_drawn("timeline")
def timeline(keys: Sequence[Any], rows: Sequence[Any], width_ms: int) -> Figure:
    """Draw one band per key, the hottest on top, darker where more operations were parked."""
    names = ("run_id", "side", "purgatory", "broker", "key")
    bins = max(row["bin"] for row in rows) + 1
    lines = _grouped(rows, *names)
    bands = [_filled(lines.get(tuple(key[n] for n in names), []), bins) for key in keys]
    figure = Figure((WIDTH_IN, 0.9 + 0.27 * len(keys)), layout="constrained")
    axes = figure.subplots()
    # As one image, because thin gaps would be visible between many rectangles.
    mesh = axes.imshow(
        bands,
        extent=(0, bins * width_ms / 1000, len(keys), 0),
        aspect="auto",
        interpolation="nearest",
        cmap="YlGnBu",
        vmin=0,
    )
    axes.set_yticks([number + 0.5 for number in range(len(keys))])
    axes.set_yticklabels([f"{k['purgatory']} {k['key']} @ {k['broker']}" for k in keys])
    axes.grid(visible=False)
    axes.set_xlabel("seconds since the first event")
    axes.set_ylabel("purgatory, key @ broker")
    bar = figure.colorbar(mesh, ax=axes, label="parked at once, at most", pad=0.01)
    _counts(bar.ax.yaxis)
    return figure


@_drawn("sweep")
def heat_map(cells: Sequence[Any], names: Sequence[str]) -> Figure:
    """Draw `share` over the first two of the named settings, with a panel per value of the third."""
    x_name, y_name, panel_name = names
    by_panel = _grouped(cells, panel_name)
    xs = sorted({cell[x_name] for cell in cells})
    ys = sorted({cell[y_name] for cell in cells})
    figure = Figure((WIDTH_IN, 1.2 + 0.42 * len(ys)), layout="constrained")
    row = figure.subplots(1, len(by_panel), squeeze=False, sharey=True)[0]
    colours = ScalarMappable(Normalize(0, 1), "YlOrRd")
    for axes, (value,) in zip(row, sorted(by_panel), strict=True):
        shares = {(c[x_name], c[y_name]): c["share"] for c in by_panel[(value,)]}
        grid = [[shares.get((x, y)) for x in xs] for y in ys]
        filled = [[float("nan") if s is None else s for s in line] for line in grid]
        axes.imshow(filled, cmap="YlOrRd", vmin=0, vmax=1, aspect="auto", origin="lower")
        for j, line in enumerate(grid):
            for i, share in enumerate(line):
                text = "" if share is None else f"{share:.0%}"
                colour = "white" if (share or 0) > 0.6 else "#1d2733"
                axes.text(i, j, text, ha="center", va="center", color=colour)
        axes.set_xticks(range(len(xs)), [_label(x) for x in xs])
        axes.set_yticks(range(len(ys)), [_label(y) for y in ys])
        axes.grid(visible=False)
        axes.set_title(f"{panel_name} = {_label(value)}")
        axes.set_xlabel(x_name)
    row[0].set_ylabel(y_name)
    figure.colorbar(colours, ax=list(row), label="share that timed out", pad=0.01)
    return figure


def _label(value: Any) -> str:
    return f"{value:,g}" if isinstance(value, int | float) else str(value)
