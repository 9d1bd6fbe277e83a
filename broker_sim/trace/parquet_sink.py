"""A trace as Parquet: a directory of files, each of them whole.

A Parquet file can be read only once its end is written. So the lines of some seconds make a file, under
a name that readers leave out, and it gets its own name when it is complete: a process that is killed
loses only the lines of the file that it had not finished. Kafka has no counterpart.
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
"""Maximum age of a file's first line, in periods of the trace's thread (ten a second)."""
FILE_BYTES = 32 << 20
"""A file takes no more lines when their texts are larger than this."""
BLOCK_BYTES = 1 << 20
"""Number of bytes parsed at once; the whole text as one block takes half as long again."""
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
    """Return pyarrow with these of its modules. Raises MissingExtraError without it."""
    try:
        for module in modules:
            import_module(f"pyarrow.{module}")
        return import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow is not installed: pip install 'broker-sim[parquet]'") from error


class ParquetSink:
    """A directory of Parquet files with a column for each of `FIELDS`.

    Files of an earlier trace in the directory are replaced. Raises MissingExtraError without pyarrow,
    OSError when the directory cannot be made or has anything else in it.
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
        """Take the lines; they are in a file when `end_period` was called often enough."""
        text = ("\n".join(lines) + "\n").encode()
        self._pending.append(text)
        self._pending_bytes += len(text)
        self._longest_line = max(self._longest_line, *map(len, lines), 0)

    def end_period(self) -> None:
        """Write a file if the oldest line has waited for long enough, or the lines are large."""
        if not self._pending:
            return
        self._periods += 1
        if self._periods >= FILE_PERIODS or self._pending_bytes >= FILE_BYTES:
            self._write_file()

    def close(self) -> None:
        """Write what is left; a trace without a line is one file without a row."""
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
        """Return the lines so far as a table, and forget them."""
        text = b"".join(self._pending)
        self._pending, self._pending_bytes, self._periods = [], 0, 0
        schema = self._parse_options.explicit_schema
        if not text:
            return schema.empty_table()
        table = self._arrow.json.read_json(
            self._arrow.BufferReader(text),
            # No threads: the cores are the brokers'. A line may lie in two blocks, but not in three.
            self._arrow.json.ReadOptions(use_threads=False, block_size=max(BLOCK_BYTES, self._longest_line)),
            self._parse_options,
        )
        return table.cast(schema)


def _schema(arrow: Any) -> Any:
    kinds = {"keys": arrow.list_(arrow.string())} | {name: getattr(arrow, kind)() for name, kind in NOT_TEXT.items()}
    return arrow.schema([(name, kinds.get(name, arrow.string())) for name in FIELDS])


def _make_empty(directory: Path) -> None:
    """Make the directory, or empty it of an earlier trace."""
    directory.mkdir(exist_ok=True)
    present = list(directory.iterdir())
    foreign = [path for path in present if not OUR_NAMES.fullmatch(path.name)]
    if foreign:
        raise OSError(errno.ENOTEMPTY, f"{foreign[0].name} in it is no trace", str(directory))
    for path in present:
        path.unlink()
