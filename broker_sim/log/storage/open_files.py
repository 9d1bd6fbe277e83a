"""The open files of a broker's logs, as many as the process can spare."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OpenFiles"]

MOST_FILES: Final = 1_024
SHARE_OF_LIMIT: Final = 8
"""An eighth of what the process may open goes to the files of one broker; sockets need the rest."""


class OpenFiles:
    """Descriptors by path. The one that was opened first is closed when there are too many."""

    __slots__ = ("_descriptors", "_most")

    def __init__(self, most: int | None = None) -> None:
        if most is None:
            import resource  # noqa: PLC0415 - only for data on disk: Windows does not have it

            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = MOST_FILES if soft < 0 else max(8, min(MOST_FILES, soft // SHARE_OF_LIMIT))
        self._most = most
        self._descriptors: dict[Path, int] = {}

    def descriptor(self, path: Path, *, create: bool = False) -> int:
        """Return a descriptor to read and write the file; with `create` it is made if there is none.

        It holds until the next call. Raises OSError.
        """
        found = self._descriptors.get(path)
        if found is not None:
            return found
        while len(self._descriptors) >= self._most:
            self.close(next(iter(self._descriptors)))
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
        self._descriptors[path] = opened
        return opened

    def rename(self, path: Path, new_path: Path) -> None:
        """Hear that the file has a new name; it stays open."""
        opened = self._descriptors.pop(path, None)
        if opened is not None:
            self._descriptors[new_path] = opened

    def close(self, path: Path) -> None:
        """Close the file if it is open."""
        opened = self._descriptors.pop(path, None)
        if opened is not None:
            os.close(opened)

    def close_in(self, directory: Path) -> None:
        """Close every file in the directory."""
        for path in list(self._descriptors):
            if path.parent == directory:
                self.close(path)

    def close_all(self) -> None:
        """Close every file."""
        for path in list(self._descriptors):
            self.close(path)
