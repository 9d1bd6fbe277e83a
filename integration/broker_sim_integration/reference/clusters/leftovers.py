"""Local processes of an earlier run that was killed before it could end them: the next run ends them.

The name of a run's directory contains the id of the process that created it. If that process is gone,
the Java processes in the directory are leftovers.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "broker-sim-kafka-"
PROCESSES = Path("/proc")


def make_run_directory() -> Path:
    """Return a new directory for the nodes of a cluster of this process."""
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove_leftovers() -> None:
    """Kill all processes in the directories of dead processes, and remove these directories.

    Limited to processes of this user; does nothing on systems without /proc.
    """
    if not PROCESSES.is_dir():
        return
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = directory.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal() and not (PROCESSES / owner).exists():
            _kill_processes_of(directory)
            shutil.rmtree(directory, ignore_errors=True)


def _kill_processes_of(directory: Path) -> None:
    named = f"{directory}{os.sep}".encode()
    for process in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if named in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
