"""Lateness of both sides as a picture: an SVG with a stroke per response, a row per wait."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from broker_sim_integration.report.lateness_rows import FIRST_MS, LAST_MS, position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim_integration.report.lateness_rows import LatenessRow

WIDTH: Final = 900
LEFT: Final = 76
RIGHT: Final = 130
TOP: Final = 24
STRIP: Final = 14
ROW: Final = 2 * STRIP + 26
COLOURS: Final = {"Kafka": "var(--purgatory-0)", "simulator": "var(--purgatory-1)"}
"""Colours of `broker_sim.page`, for light and dark."""
TICKS_MS: Final = (FIRST_MS, 1, 10, 100, LAST_MS)


def timing_plot(rows: Sequence[LatenessRow]) -> str:
    """Return an SVG with the lateness of each response, with p50 and p95, on a logarithmic scale."""
    height = TOP + len(rows) * ROW + 8
    parts = [f"<svg viewBox='0 0 {WIDTH} {height}' width='100%' font-size='11' role='img'>"]
    parts += _axis(height)
    for place, row in enumerate(rows):
        parts += _row(TOP + place * ROW, row)
    return "".join([*parts, "</svg>"])


def _axis(height: int) -> Iterator[str]:
    for tick_ms in TICKS_MS:
        x = _x(tick_ms)
        yield f"<path d='M{x:.1f} {TOP - 6}V{height - 8}' stroke='#8884'/>"
        yield f"<text x='{x:.1f}' y='{TOP - 10}' fill='currentColor' text-anchor='middle'>"
        yield f"{tick_ms:g} ms</text>"


def _row(top: float, row: LatenessRow) -> Iterator[str]:
    name = html.escape(row.name)
    yield f"<text x='{LEFT}' y='{top + 13}' fill='currentColor' font-weight='600'>{name}"
    yield f"<tspan font-weight='400'> {html.escape(row.compared.verdict)}</tspan></text>"
    for place, (side, samples, lateness) in enumerate(row.sides()):
        y = top + 19 + place * STRIP
        colour = COLOURS[side]
        yield f"<text x='{LEFT - 6}' y='{y + 10}' fill='{colour}' text-anchor='end'>{side}</text>"
        strokes = "".join(f"M{_x(late):.1f} {y + 2}v{STRIP - 4}" for late in samples)
        yield f"<path d='{strokes}' stroke='{colour}' stroke-opacity='.35'/>"
        for share, value in (("p50", lateness.p50), ("p95", lateness.p95)):
            x = _x(value)
            mark = f"M{x:.1f} {y}v{STRIP - 1}"
            yield f"<path d='{mark}' stroke='{colour}' stroke-width='3'>"
            yield f"<title>{share} {value:g} ms</title></path>"
        numbers = f"{lateness.p50:.1f} / {lateness.p95:.1f} of {lateness.count}"
        yield f"<text x='{WIDTH - RIGHT + 14}' y='{y + 10}' fill='{colour}'>{numbers}</text>"


def _x(lateness_ms: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * position(lateness_ms)
