"""Lateness of both sides as a picture: an SVG with a cumulative curve per side and timing class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from integration.observations import TimingClass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from integration.comparison.verdict import ScenarioResult

__all__ = ["timing_plot"]

WIDTH: Final = 320
HEIGHT: Final = 180
MARGIN: Final = 34
COLOURS: Final = {"kafka": "#c2410c", "sim": "#1d6fd1"}
TICKS_MS: Final = (0.1, 1.0, 10.0, 100.0, 1000.0)
SHOWN: Final = (TimingClass.AT_ONCE, TimingClass.AT_TIMEOUT, TimingClass.ON_EVENT)


def timing_plot(results: Sequence[ScenarioResult]) -> str:
    """Return an SVG: the share of responses that were at most so late, on a logarithmic scale."""
    total = len(SHOWN) * (WIDTH + MARGIN) + MARGIN
    parts = [f"<svg viewBox='0 0 {total} {HEIGHT + 3 * MARGIN}' width='100%' font-size='11'>"]
    for place, kind in enumerate(SHOWN):
        left = MARGIN + place * (WIDTH + MARGIN)
        parts += _axes(left, kind)
        for side, colour in COLOURS.items():
            samples = sorted(_lateness(results, side, kind))
            parts += _curve(left, samples, colour)
    for place, (side, colour) in enumerate(COLOURS.items()):
        name = "Kafka" if side == "kafka" else "simulator"
        at = f"x='{MARGIN + place * 80}' y='{HEIGHT + 2.7 * MARGIN:g}'"
        parts.append(f"<text {at} fill='{colour}'>&#9632; {name}</text>")
    return "".join([*parts, "</svg>"])


def _lateness(results: Sequence[ScenarioResult], side: str, kind: TimingClass) -> Iterator[float]:
    for result in results:
        for run in result.kafka if side == "kafka" else result.sim:
            for seen in run.observations:
                if seen.timing.kind is kind:
                    yield seen.lateness_ms


def _x(left: float, lateness_ms: float) -> float:
    first, last = math.log10(TICKS_MS[0]), math.log10(TICKS_MS[-1])
    position = math.log10(min(max(lateness_ms, TICKS_MS[0]), TICKS_MS[-1]))
    return left + WIDTH * (position - first) / (last - first)


def _axes(left: float, kind: TimingClass) -> Iterator[str]:
    bottom = MARGIN + HEIGHT
    frame = f"x='{left}' y='{MARGIN}' width='{WIDTH}' height='{HEIGHT}'"
    yield f"<rect {frame} fill='none' stroke='#8884'/>"
    title = kind.value.replace("_", " ")
    yield f"<text x='{left}' y='{MARGIN - 8}' fill='currentColor'>{title}: lateness in ms</text>"
    for tick in TICKS_MS:
        x = _x(left, tick)
        yield f"<path d='M{x:.1f} {MARGIN}V{bottom}' stroke='#8884'/>"
        yield f"<text x='{x:.1f}' y='{bottom + 14}' fill='currentColor' "
        yield f"text-anchor='middle'>{tick:g}</text>"


def _curve(left: float, samples: Sequence[float], colour: str) -> Iterator[str]:
    if not samples:
        return
    bottom = MARGIN + HEIGHT
    points = [f"{_x(left, samples[0]):.1f},{bottom}"]
    for rank, lateness_ms in enumerate(samples, 1):
        points.append(f"{_x(left, lateness_ms):.1f},{bottom - HEIGHT * rank / len(samples):.1f}")
    line = " ".join(points)
    yield f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.5'/>"
