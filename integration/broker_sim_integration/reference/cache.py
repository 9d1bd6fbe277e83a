"""A directory for files that are expensive to fetch or to build; safe against concurrent callers."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK_ATTEMPT_INTERVAL_S = 0.25


def cache_directory() -> Path:
    """Return the cache directory, `$BROKER_SIM_CACHE` or `~/.cache/broker-sim`, after creating it."""
    configured = os.environ.get("BROKER_SIM_CACHE")
    directory = Path(configured) if configured else Path.home() / ".cache" / "broker-sim"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def exclusive(name: str, *, timeout_s: int, progress: Progress = silent) -> Iterator[None]:
    """Hold the lock `name` of this cache; other processes and threads wait.

    Raise `ReferenceUnavailableError` if another holder keeps it longer than `timeout_s`. The lock is the
    kernel's, so it is released when its holder dies.
    """
    path = cache_directory() / f"{name}.lock"
    pause = threading.Event()
    with path.open("w", encoding="utf-8") as lock:
        for attempt in range(int(timeout_s / LOCK_ATTEMPT_INTERVAL_S)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == 0:
                    progress(f"waiting for another process that makes {name}")
                pause.wait(LOCK_ATTEMPT_INTERVAL_S)
        else:
            raise ReferenceUnavailableError(f"another process has held {path} for {timeout_s} s; end it and try again")
        yield


def cached_directory(name: str, fill: Callable[[Path], None], *, timeout_s: int, progress: Progress = silent) -> Path:
    """Return the cache's directory `name`; if it is missing, call `fill` with an empty directory first.

    A reader sees the directory complete or not at all: it is filled under another name and renamed.
    """
    target = cache_directory() / name
    if target.is_dir():
        return target
    with exclusive(name, timeout_s=timeout_s, progress=progress):
        if target.is_dir():
            return target
        unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
        try:
            fill(unfinished)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target
