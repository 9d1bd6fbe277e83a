"""Progress messages during long steps: a callable that takes one line."""

from __future__ import annotations

import sys
from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line without a line end; called from the thread that runs the step."""


def silent(_line: str) -> None:
    """Discard the line."""


def to_stderr(line: str) -> None:
    """Write the line to stderr, so that stdout contains only results."""
    sys.stderr.write(f"[reference] {line}\n")
    sys.stderr.flush()
