"""The files in a broker's log directory on either side, and starts that may fail.

Extends `BrokerVerbs` by operations on a dead broker. It is a module of its own, because a change of
`BrokerVerbs` would invalidate all recordings.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class BrokerFiles(Protocol):
    """Files by their paths in a broker's log directory, such as `topic-0/00000000000000000000.log`."""

    def names(self, broker: int, directory: str = "") -> list[str]:
        """Return the sorted names in the directory."""

    def read(self, broker: int, path: str) -> bytes:
        """Return the content of a file."""

    def write(self, broker: int, path: str, content: bytes) -> None:
        """Write a file; a missing directory is created."""

    def remove(self, broker: int, path: str) -> None:
        """Remove a file."""


@runtime_checkable
class HasBrokerFiles(Protocol):
    """Verbs of a cluster with its brokers' data on disk."""

    @property
    def files(self) -> BrokerFiles:
        """The files of its brokers."""

    def comes_up(self, broker: int) -> bool:
        """Start a broker; return whether it serves clients. Otherwise its process has ended."""


class DirectoryFiles:
    """`BrokerFiles` in directories of this machine."""

    def __init__(self, directory_of: Callable[[int], Path]) -> None:
        """`directory_of(broker)` is the broker's log directory."""
        self._directory_of = directory_of

    def names(self, broker: int, directory: str = "") -> list[str]:
        """Return the sorted names in the directory."""
        return sorted(path.name for path in (self._directory_of(broker) / directory).iterdir())

    def read(self, broker: int, path: str) -> bytes:
        """Return the content of a file."""
        return (self._directory_of(broker) / path).read_bytes()

    def write(self, broker: int, path: str, content: bytes) -> None:
        """Write a file; a missing directory is created."""
        file = self._directory_of(broker) / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)

    def remove(self, broker: int, path: str) -> None:
        """Remove a file, or a directory with its content."""
        file = self._directory_of(broker) / path
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()
