"""Destinations of a trace's lines: files, or streams of the caller."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from broker_sim.trace.parquet_sink import PARQUET, ParquetSink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GZIP_LEVEL = 1


class TraceSink(Protocol):
    """A receiver of lines, called by one thread at a time."""

    def write(self, lines: Sequence[str]) -> None:
        """Write lines, given without line ends."""

    def close(self) -> None:
        """Write the remaining lines; called last."""


class FileSink:
    """A file of lines, compressed if its name is `*.gz`. Raises OSError if it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def write(self, lines: Sequence[str]) -> None:
        """Append the lines."""
        self._file.write(("\n".join(lines) + "\n").encode())
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def sink_of(path: Path) -> TraceSink:
    """Return the sink for a path: Parquet for `*.parquet`, otherwise a file of lines."""
    return ParquetSink(path) if path.suffix == PARQUET else FileSink(path)


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast("BinaryIO", gzip.open(path, "wb", GZIP_LEVEL))
    return path.open("wb")
