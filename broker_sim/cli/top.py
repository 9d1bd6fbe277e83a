"""`broker-sim top`: the purgatories of a running cluster, live in the terminal."""

from __future__ import annotations

import contextlib
from threading import Event
from typing import TYPE_CHECKING

import click
from rich.live import Live

from broker_sim.cli.parameters import control_client, control_options
from broker_sim.cli.top_view import render
from broker_sim.control.client import ControlError
from purgatory import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from purgatory import Clock

__all__ = ["command", "watch"]

MS_PER_SECOND = 1_000


@click.command("top")
@control_options
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Seconds between two updates.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    help="End after this many updates; by default at ctrl-C.",
)
def command(url: str | None, token: str | None, interval_s: float, count: int | None) -> None:
    """Watch what is parked, completed and expired, the wheels, the hottest keys, and groups."""
    try:
        client = control_client(url, token)
        with contextlib.suppress(KeyboardInterrupt):
            watch(
                lambda: client.get("/purgatory") | client.get("/groups"),
                clock=SystemClock(),
                # Nobody sets the event: it waits for ctrl-C or the time.
                pause=lambda: Event().wait(interval_s),
                count=count,
            )
    except ControlError as error:
        raise click.ClickException(str(error)) from error


def watch(
    look: Callable[[], dict[str, object]],
    *,
    clock: Clock,
    pause: Callable[[], object],
    count: int | None = None,
    console: Console | None = None,
) -> None:
    """Show what `look` returns again and again, `count` times or without end.

    The last state stays on the screen.
    """
    before, looked_ms = look(), clock.now_ms()
    shown = 1
    picture = render(before, None, 0.0)
    with Live(picture, console=console, auto_refresh=False, transient=False) as live:
        while count is None or shown < count:
            pause()
            now, now_ms = look(), clock.now_ms()
            live.update(render(now, before, (now_ms - looked_ms) / MS_PER_SECOND), refresh=True)
            before, looked_ms = now, now_ms
            shown += 1
