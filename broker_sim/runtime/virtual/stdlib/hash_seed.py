"""Hashes of strings, which are the same in each process only if PYTHONHASHSEED is pinned.

Sets of strings, and of tuples with strings, are iterated in the order of their hashes. The brokers and aiokafka
send nothing in such an order (see `sorted_sets`); a program may. A process gets its hash seed at its start, so
pinning takes a new process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

VARIABLE = "PYTHONHASHSEED"


def pinned_hash_seed() -> int | None:
    """Return the hash seed that this process was started with; None if it is random."""
    value = os.environ.get(VARIABLE, "")
    if not value.isdecimal() or sys.flags.ignore_environment:
        return None
    return int(value)


def pin_hash_seed(seed: int = 0) -> None:
    """Restart this program with a pinned hash seed, unless one is pinned already."""
    if pinned_hash_seed() is None:
        _restart({**os.environ, VARIABLE: str(seed)})


def _restart(environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform == "win32":  # a waiting parent would see this program end at once
        done = subprocess.run(  # noqa: S603 - the very same program
            [sys.executable, *sys.orig_argv[1:]], env=environment, check=False
        )
        sys.exit(done.returncode)
    os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - the very same program
