"""A trace as a directory of complete Parquet files.

A Parquet file can be read only once its end is written. So the lines of a few seconds make a file, which readers
ignore until it is complete and renamed: a process that is killed loses only the lines of the unfinished file.
Kafka has no counterpart.
"""

from __future__ import annotations

import errno
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from broker_sim.errors import MissingExtraError
from broker_sim.trace.lines import FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PARQUET = ".parquet"
FILE_PERIODS = 50
"""Maximum age of a file's first line, in periods of the trace's thread (ten per second)."""
FILE_BYTES = 32 << 20
"""Size of the pending lines in bytes above which a file is written."""
BLOCK_BYTES = 1 << 20
"""Number of bytes parsed at once; one block for the whole text takes 50 % longer."""
LEVEL = 1
OUR_NAMES = re.compile(r"trace-\d{5,}\.parquet|\.trace-\d{5,}\.unfinished")
NOT_TEXT = {
    "broker": "int32",
    "error_code": "int32",
    **dict.fromkeys(
        ("ts_ms", "operation_id", "delay_ms", "waited_ms", "lateness_ms", "watched", "num_delayed"), "int64"
    ),
}


def arrow_with(*modules: str) -> Any:
    """Import these modules of pyarrow and return pyarrow. Raises MissingExtraError without it."""
    try:
        for module in modules:
            import_module(f"pyarrow.{module}")
        return import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow is not installed: pip install 'broker-sim[parquet]'") from error


class ParquetSink:
    """A directory of Parquet files with a column for each of `FIELDS`.

    Files of an earlier trace in the directory are deleted. Raises MissingExtraError without pyarrow, OSError if the
    directory cannot be created or contains other files.
    """

    def __init__(self, directory: Path) -> None:
        pyarrow = self._arrow = arrow_with("json", "parquet")
        self._parse_options = pyarrow.json.ParseOptions(
            explicit_schema=_schema(pyarrow), unexpected_field_behavior="error"
        )
        self._directory = directory
        self._number = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._longest_line = 0
        self._periods = 0
        self._is_failed = False
        _make_empty(directory)

    def write(self, lines: Sequence[str]) -> None:
        """Queue the lines; `end_period` or `close` writes them into a file."""
        text = ("\n".join(lines) + "\n").encode()
        self._pending.append(text)
        self._pending_bytes += len(text)
        self._longest_line = max(self._longest_line, *map(len, lines), 0)

    def end_period(self) -> None:
        """Write a file if the oldest line is old enough or the lines are large."""
        if not self._pending:
            return
        self._periods += 1
        if self._periods >= FILE_PERIODS or self._pending_bytes >= FILE_BYTES:
            self._write_file()

    def close(self) -> None:
        """Write the remaining lines; a trace without lines is one file without rows."""
        if self._pending or not (self._number or self._is_failed):
            self._write_file()

    def _write_file(self) -> None:
        self._is_failed = True
        table = self._table()
        name = f"trace-{self._number:05d}"
        unfinished = self._directory / f".{name}.unfinished"
        try:
            self._arrow.parquet.write_table(table, unfinished, compression="zstd", compression_level=LEVEL)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        unfinished.rename(self._directory / f"{name}{PARQUET}")
        self._number += 1
        self._is_failed = False

    def _table(self) -> Any:
        """Return the pending lines as a table, and forget them."""
        text = b"".join(self._pending)
        self._pending, self._pending_bytes, self._periods = [], 0, 0
        schema = self._parse_options.explicit_schema
        if not text:
            return schema.empty_table()
        table = self._arrow.json.read_json(
            self._arrow.BufferReader(text),
            # No threads: the cores belong to the brokers. A line may span two blocks, but not three.
            self._arrow.json.ReadOptions(use_threads=False, block_size=max(BLOCK_BYTES, self._longest_line)),
            self._parse_options,
        )
        return table.cast(schema)


def _schema(arrow: Any) -> Any:
    kinds = {"keys": arrow.list_(arrow.string())} | {name: getattr(arrow, kind)() for name, kind in NOT_TEXT.items()}
    return arrow.schema([(name, kinds.get(name, arrow.string())) for name in FIELDS])


def _make_empty(directory: Path) -> None:
    """Create the directory, or delete the files of an earlier trace."""
    directory.mkdir(exist_ok=True)
    present = list(directory.iterdir())
    foreign = [path for path in present if not OUR_NAMES.fullmatch(path.name)]
    if foreign:
        raise OSError(errno.ENOTEMPTY, f"{foreign[0].name} in it does not belong to a trace", str(directory))
    for path in present:
        path.unlink()
