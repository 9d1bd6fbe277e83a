"""`broker-sim top`: purgatories, groups and transactions of a running cluster, live in the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from threading import Event
from typing import TYPE_CHECKING

import click
from broker_sim_purgatory import SystemClock
from rich.console import Console
from rich.live import Live

from broker_sim.cli.group_tables import LISTINGS
from broker_sim.cli.parameters import control_client, control_options
from broker_sim.cli.top_view import render
from broker_sim.control.client import ControlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim_purgatory import Clock

    from broker_sim.control.client import ControlClient

MS_PER_SECOND = 1_000
QUIT_KEYS = (b"q", b"Q", b"")
"""The keys that quit; an empty read means that the terminal is gone."""


@contextlib.contextmanager
def unbuffered_keys() -> Iterator[int | None]:
    """Read keys without the enter key in the `with` block, whose target is the terminal's descriptor.

    It is None without a terminal, and on Windows, which has no termios; ctrl-C works everywhere.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield None
        return
    import termios  # noqa: PLC0415 - Windows has none
    import tty  # noqa: PLC0415 - the same

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def wait_for_quit(descriptor: int | None, seconds: float) -> bool:
    """Wait that long for a key; return whether it quits. Other keys end the wait too."""
    if descriptor is None:
        Event().wait(seconds)
        return False
    ready, _, _ = select.select([descriptor], [], [], seconds)
    return bool(ready) and os.read(descriptor, 1) in QUIT_KEYS


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
@click.option("--count", type=click.IntRange(min=1), help="Number of updates [default: until q or ctrl-C].")
def command(url: str | None, token: str | None, interval_s: float, count: int | None) -> None:
    """Watch delayed operations, timing wheels, hottest keys, groups, transactions and producers."""
    try:
        client = control_client(url, token)
        with contextlib.suppress(KeyboardInterrupt), unbuffered_keys() as terminal:
            watch(
                lambda: _look(client),
                clock=SystemClock(),
                pause=lambda: wait_for_quit(terminal, interval_s),
                count=count,
            )
    except ControlError as error:
        raise click.ClickException(str(error)) from error


def _look(client: ControlClient) -> dict[str, object]:
    """Return the merged responses for a picture; they have no fields in common."""
    answer: dict[str, object] = client.get("/purgatory")
    for verb in dict.fromkeys(listing.verb for listing in LISTINGS):
        answer |= client.get(f"/{verb}")
    return answer


def watch(
    look: Callable[[], dict[str, object]],
    *,
    clock: Clock,
    pause: Callable[[], bool],
    count: int | None = None,
    console: Console | None = None,
) -> None:
    """Show the results of `look`, `count` times or until `pause` returns True.

    The last picture stays on the screen; pictures fit the terminal.
    """
    console = console or Console()
    before, looked_ms = look(), clock.now_ms()
    screens = 1
    picture = render(before, None, 0.0, console.height, console.width)
    with Live(picture, console=console, auto_refresh=False, transient=False) as live:
        while (count is None or screens < count) and not pause():
            now, now_ms = look(), clock.now_ms()
            elapsed_s = (now_ms - looked_ms) / MS_PER_SECOND
            picture = render(now, before, elapsed_s, console.height, console.width)
            live.update(picture, refresh=True)
            before, looked_ms = now, now_ms
            screens += 1
