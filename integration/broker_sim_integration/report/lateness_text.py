"""Lateness of both sides as a picture in text: a strip per side on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.report.lateness_rows import FIRST_MS, LAST_MS, position

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim_integration.report.lateness_rows import LatenessRow

WIDTH: Final = 41
NUMBERS: Final = "  {side:<10}{count:>5}{p50:>8}{p95:>8}  "


def lateness_lines(rows: Iterable[LatenessRow]) -> Iterator[str]:
    """Yield lines of at most 80 characters: `-` marks samples, `#` their median, `|` p95."""
    axis = list(" " * WIDTH)
    for tick_ms in (FIRST_MS, 1, 10, 100, LAST_MS):
        text = f"{tick_ms:g}"
        at = min(_column(tick_ms), WIDTH - len(text))
        axis[at : at + len(text)] = text
    head = NUMBERS.format(side="late, ms", count="count", p50="p50 #", p95="p95 |")
    yield head + "".join(axis)
    for row in rows:
        yield f"{row.name}  {row.compared.verdict}".rstrip()
        for side, samples, lateness in row.sides():
            numbers = NUMBERS.format(
                side=side, count=lateness.count, p50=f"{lateness.p50:.1f}", p95=f"{lateness.p95:.1f}"
            )
            yield numbers + _strip(samples, lateness.p50, lateness.p95)


def _strip(samples: Sequence[float], p50: float, p95: float) -> str:
    strip = ["."] * WIDTH
    for sample in samples:
        strip[_column(sample)] = "-"
    strip[_column(p95)] = "|"
    strip[_column(p50)] = "#"
    return "".join(strip)


def _column(lateness_ms: float) -> int:
    return round(position(lateness_ms) * (WIDTH - 1))
