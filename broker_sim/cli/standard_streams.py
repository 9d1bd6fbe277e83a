"""The standard streams of a command: opens closed ones, and reports failed output in one line."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from broker_sim.cli.commands import Commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

STDIN, STDOUT, STDERR = 0, 1, 2
SIGNALLED = 128
"""Difference between the exit code of a process that a signal ended, as shells give it, and the signal's number."""
UNWRITABLE = {errno.EIO, errno.ENOSPC, errno.EPIPE}
"""Errors of writes to stdout or to a full disk; errors of opening a file have a file name."""


class Program(Commands):
    """The commands of a program, run with `standard_streams`."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Parse the command line and run the command."""
        with standard_streams(str(self.name)):
            return super().main(*arguments, **options)


@contextlib.contextmanager
def standard_streams(program: str) -> Iterator[None]:
    """Run the main function of `program` in this context.

    A closed standard stream is opened on the null device: otherwise the next socket would get its descriptor,
    and messages to stderr would be written there. Output that cannot be written (a full disk) ends the process
    with exit code 1 and one line on stderr, or silently if the reader of a pipe has gone away. SIGTERM ends the
    process as an exit does, with its temporary files and the processes that it started.
    """
    _open_closed_descriptors()
    at_sigterm = signal.signal(signal.SIGTERM, _exit)
    code: int | str | None = 0
    failure: OSError | None = None
    try:
        yield
    except SystemExit as end:
        code = end.code
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        failure = error
    finally:
        signal.signal(signal.SIGTERM, at_sigterm or signal.SIG_DFL)
    failure = _failure_of_flush() or failure
    if failure is not None and code in {0, None}:
        code = 1
        if failure.errno != errno.EPIPE:
            click.echo(f"{program}: cannot write the output: {failure.strerror}; redirect it to another disk", err=True)
    sys.exit(code)


def _exit(number: int, _frame: object) -> NoReturn:
    sys.exit(SIGNALLED + number)


def _open_closed_descriptors() -> None:
    for descriptor in (STDIN, STDOUT, STDERR):  # in this order, because open() takes the lowest free one
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the end, as Python's own


def _failure_of_flush() -> OSError | None:
    """Flush stdout and return the error; then drop its buffer, so that the interpreter's exit does not fail too."""
    if sys.stdout is None:
        return None
    try:
        sys.stdout.flush()
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, STDOUT)
        os.close(null)
        sys.stdout.flush()
        return error
    return None
