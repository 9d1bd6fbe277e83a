"""Draw the timing wheel from its live state: `python -m tools.draw_wheel` writes docs/how/wheel.svg.

A timer in virtual time is inspected at a few moments by `inspect_timer`.
"""

from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim_purgatory import TimerTask, VirtualTimer
from broker_sim_purgatory.inspect import inspect_timer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_purgatory.inspect import BucketSnapshot, TimerSnapshot, WheelSnapshot

TARGET = Path(__file__).parents[1] / "docs" / "how" / "wheel.svg"

DELAYS_MS = (8, 350, 446, 450, 473, 3_000)
MOMENTS_MS = (0, 400, 440)

CELL, TOP = 260, 30
OUTER, INNER, INDEX_RADIUS = 96, 52, 43
CURRENT, ENQUEUED, PLAIN, TASK = "#ffd98a", "#d5e6f5", "#ffffff", "#b3202c"
STYLE = "text{font-family:sans-serif;fill:#222}path{stroke:#888;stroke-width:1}"


class Waiting(TimerTask):
    """A task without effect."""

    __slots__ = ()

    def run(self) -> None:
        """Do nothing."""


def draw() -> str:
    """Return the picture: a row per moment, a ring per level."""
    timer = VirtualTimer()
    for delay_ms in DELAYS_MS:
        timer.add(Waiting(delay_ms))
    moments = []
    for now_ms in MOMENTS_MS:
        timer.advance_to(now_ms)
        moments.append(inspect_timer(timer))
    width = CELL * max(len(moment.wheels) for moment in moments)
    height = (CELL + TOP) * len(moments)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for row, moment in enumerate(moments):
        lines += _draw_moment(moment, row * (CELL + TOP))
    return "\n".join([*lines, "</svg>", ""])


def _draw_moment(moment: TimerSnapshot, top: int) -> Iterator[str]:
    yield _text(10, top + 20, f"at {moment.now_ms} ms", size=16, anchor="start")
    for column, wheel in enumerate(moment.wheels):
        yield from _draw_wheel(wheel, column * CELL + CELL // 2, top + TOP + CELL // 2)


def _draw_wheel(wheel: WheelSnapshot, x: int, y: int) -> Iterator[str]:
    for bucket in wheel.buckets:
        yield from _draw_bucket(wheel, bucket, x, y)
    reach = f"{wheel.current_time_ms} to {wheel.end_ms}"
    for line, text in enumerate((f"level {wheel.level}", f"tick {wheel.tick_ms} ms", reach)):
        yield _text(x, y - 10 + 14 * line, text)


def _draw_bucket(wheel: WheelSnapshot, bucket: BucketSnapshot, x: int, y: int) -> Iterator[str]:
    size = len(wheel.buckets)
    colour = ENQUEUED if bucket.enqueued else PLAIN
    if bucket.index == wheel.current_index:
        colour = CURRENT
    corners = [
        _point(x, y, radius, (bucket.index + side) / size)
        for radius, side in ((INNER, 0), (OUTER, 0), (OUTER, 1), (INNER, 1))
    ]
    a, b, c, d = (f"{left:.1f} {down:.1f}" for left, down in corners)
    arcs = f"M{a} L{b} A{OUTER} {OUTER} 0 0 1 {c} L{d} A{INNER} {INNER} 0 0 0 {a} Z"
    yield f'<path d="{arcs}" fill="{colour}"/>'
    middle = (bucket.index + 0.5) / size
    yield _text(*_point(x, y + 3, INDEX_RADIUS, middle), str(bucket.index), size=8)
    for number in range(len(bucket.tasks)):
        left, down = _point(x, y, INNER + 8 + 12 * number, middle)
        yield f'<circle cx="{left:.1f}" cy="{down:.1f}" r="4" fill="{TASK}"/>'
    if bucket.tasks:
        label = ", ".join(str(task.expiration_ms) for task in bucket.tasks)
        yield _text(*_point(x, y + 3, OUTER + 14, middle), label, size=10)


def _point(x: float, y: float, radius: float, turn: float) -> tuple[float, float]:
    """Return where `turn`, in whole turns clockwise from the top, lies on a circle."""
    return x + radius * sin(2 * pi * turn), y - radius * cos(2 * pi * turn)


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")
