"""What clients are told is the log directory of a broker, which has one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.log import LogManager

MEMORY: Final = "/memory"


def log_directory_name(logs: LogManager) -> str:
    """Return the absolute path; logs in memory have one that is nowhere."""
    directory = logs.directory
    return MEMORY if directory is None else str(Path(str(directory.path)).absolute())
