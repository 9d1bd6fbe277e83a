"""`broker-sim replay`: writes a trace or a recorded run as one HTML file that plays in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker_sim.cluster.status.replayed_trace import traced_run
from broker_sim.errors import MissingExtraError
from broker_sim.page.recording import page_of, runs_of_html
from broker_sim.trace.reading import read_events

if TYPE_CHECKING:
    from broker_sim.page.recording import RecordedRun

HTML: Final = ".html"


@click.command("replay")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.argument("beside", type=click.Path(exists=True, path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="HTML file to write [default: the name of FILE with .html, in the current directory].",
)
def command(*, file: Path, beside: Path | None, out: Path | None) -> None:
    """Write FILE as one HTML file that plays in a browser; with BESIDE two runs and their first difference.

    FILE and BESIDE are traces of `broker-sim run --trace` or `Cluster(trace=...)` (JSON lines, also as .gz, or a
    directory of Parquet files, which needs the extra `parquet`), or HTML files of `broker-sim chaos --page` or
    `pytest --kafka-page`. From a trace the page shows delayed operations, timing wheels and their requests.
    """
    out = out or Path(f"{file.name.partition('.')[0]}{HTML}")
    inputs = [file] if beside is None else [file, beside]
    if any(out.exists() and out.samefile(each) for each in inputs):
        raise click.ClickException(f"{out} would be overwritten: name another file with --out")
    page = page_of(*map(_run_of, inputs))
    try:
        click.echo(page.write(out))
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror or error}") from error


def _run_of(file: Path) -> RecordedRun:
    try:
        if file.suffix == HTML:
            return runs_of_html(file.read_text("utf-8"))[0]
        traced = traced_run(read_events(file))
    except MissingExtraError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        text = str(error)
        raise click.ClickException(text if str(file) in text else f"{file} {text}") from error
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror or error}") from error
    if traced.run_id is None:
        raise click.ClickException(f"{file} has no events: send requests while the trace is written")
    if traced.other_runs:
        click.echo(f"{file} has {len(traced.other_runs)} more runs, which are ignored", err=True)
    return traced.run(f"{file.name}, run {traced.run_id}")
