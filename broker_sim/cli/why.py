"""`broker-sim why`: explains from a trace why acks=all requests were slow."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker_sim.errors import ErrorCode, MissingExtraError
from broker_sim.trace.reading import read_events
from broker_sim.trace.slow_acks import slow_acks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.trace.slow_acks import SlowRequest

SILENT_SHARE: Final = 0.8
"""Share of a wait for which a follower must have been silent to be its cause."""
SHORT_MS: Final = 20
"""Longest wait in ms that does not count as slow."""


@click.command("why")
@click.argument("trace", type=click.Path(exists=True, path_type=Path))
@click.option("--count", type=click.IntRange(1), default=3, show_default=True, help="Number of requests to explain.")
def command(*, trace: Path, count: int) -> None:
    """Explain the slowest acks=all requests of TRACE: which follower did not fetch while they waited.

    TRACE is a trace of `broker-sim run --trace`, `Cluster(trace=...)` or a comparison: JSON lines, also as .gz, or a
    directory of Parquet files (extra `parquet`).
    """
    try:
        result = slow_acks(read_events(trace, only_acks=True), count)
    except (ValueError, MissingExtraError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{trace}: {error.strerror or error}") from error
    if not result.requests:
        click.echo(f"{trace} has no finished acks=all request: send one while the trace is written")
        return
    slowest = result.slowest()
    click.echo(f"Of {result.requests} finished acks=all requests the slowest waited {slowest[0].waited_ms} ms.")
    # If there are slow requests, only those are of interest.
    for request in [each for each in slowest if each.waited_ms > SHORT_MS] or slowest[:1]:
        click.echo()
        for line in _explanation(request):
            click.echo(line)


def _explanation(request: SlowRequest) -> Iterator[str]:
    when = datetime.fromtimestamp(request.ended_ms / 1_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    error = f" with {ErrorCode(request.error_code).name}" if request.error_code else ""
    yield (
        f"{', '.join(request.keys)} on broker {request.broker}: {request.outcome}{error} after {request.waited_ms} ms,"
        f" at {when} UTC"
    )
    for broker_id, silent_ms in request.silent_ms.items():
        yield f"  broker {broker_id} sent no fetch for {silent_ms} ms of that"
    yield f"  {_verdict(request)}"


def _verdict(request: SlowRequest) -> str:
    """Return the cause, as far as the trace shows it."""
    if request.waited_ms <= SHORT_MS:
        return "The brokers were not slow: look at the client's batching (linger.ms), its connections and its retries."
    silent = [broker for broker, ms in request.silent_ms.items() if ms >= SILENT_SHARE * request.waited_ms]
    names = " and ".join(f"broker {broker}" for broker in silent)
    if not silent:
        return (
            "Every follower kept fetching, but not far enough: fetches are small or throttled, or the machine is"
            f" busy; timers were up to {request.lateness_ms} ms late until then."
        )
    if len(silent) == len(request.silent_ms) > 1:
        return (
            "All followers were silent: the leader was slow or paused, or the whole machine was; timers were up to"
            f" {request.lateness_ms} ms late until then."
        )
    if request.outcome == "completed" and request.has_left.issuperset(silent):
        return f"It ended without {names}, which had left the ISR: see replica.lag.time.max.ms."
    return f"It waited for {names}: its link or disk is slow, or it hangs."
