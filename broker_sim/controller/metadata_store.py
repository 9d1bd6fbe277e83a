"""The controller's metadata in a file, which takes the place of Kafka's log `__cluster_metadata`.

The file has one line of JSON for every new image, with the changes since the previous line:

    0b1c2d3e {"version": 7, "topics": {"t": {"id": "...", "configs": {}, "partitions": {"0": [...]}}}}

Each line begins with the CRC-32C of its JSON. The first line is a full snapshot; a controller that was closed has
marked its last line. The file is rewritten when it is opened, and when it has grown large.

A kill may truncate the last line, which no broker had received yet; a power loss may lose lines that brokers have
acted on, because they are not synced. The file is truncated after its last valid line, and this is logged. A damaged
line before valid ones is not such a loss, and is refused.

If a line cannot be written (a full disk), the file is truncated to its last whole line. The next line includes the
lost changes: each line has the difference to the image in the file.

Deliberate differences: Kafka's file is a log of record batches in `__cluster_metadata-0`. And Kafka's active
controller resigns when it cannot write, so that another one leads; here there is no other, so it continues.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.controller.image_changes import changed, difference
from broker_sim.errors import ApiError, ConfigError, ErrorCode
from broker_sim.metadata import MetadataImage
from broker_sim.protocol.crc32c import crc32c
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.system import close_descriptor, open_descriptor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SMALLEST_REWRITE_BYTES: Final = 4 * 1024 * 1024
GROWTH_BEFORE_REWRITE: Final = 4
_ADVICE: Final = "use another directory, or a copy of this one"

log = get_logger(__name__)


class StoredMetadata(NamedTuple):
    """The state that a controller restarts with."""

    image: MetadataImage
    next_producer_id: int
    is_whole: bool
    """Whether the controller was closed and nothing is lost; otherwise brokers may have later changes."""


class MetadataStore:
    """The file of one controller. Thread rule: only the scheduler's thread."""

    def __init__(self, path: Path) -> None:
        """Set the path; `load` reads the file, `begin` opens it for writing."""
        self._path = path
        self._descriptor = -1
        self._image = MetadataImage(version=-1, cluster_id="")
        """The newest image."""
        self._written = self._image
        """The image that is in the file."""
        self.next_producer_id = 0
        """First producer id that has not been allocated; written with the next line."""
        self._size_bytes = 0
        """Size of the file's complete lines."""
        self._rewrite_bytes = SMALLEST_REWRITE_BYTES
        self._is_failing = False

    def load(self) -> StoredMetadata | None:
        """Return the last image and producer id, or None if there is no file.

        Raises ConfigError, with line and byte position, if a whole line is damaged.
        """
        if not self._path.exists():
            return None
        image, next_producer_id, is_whole = MetadataImage(version=-1, cluster_id=""), 0, False
        content = self._path.read_bytes()
        lines = _good_lines(content)
        if not lines:
            raise ConfigError(f"{self._path} has no complete line; {_ADVICE}")
        position = 0
        for number, line in enumerate(lines, 1):
            try:
                change = _read_line(line)
                image = changed(image, change)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise ConfigError(
                    f"{self._path} is damaged in line {number}, at byte {position}: {error!r}; {_ADVICE}"
                ) from error
            next_producer_id = change.get("next_producer_id", next_producer_id)
            is_whole = change.get("closed", False)
            position += len(line) + 1
        if position < len(content):
            log.warning("metadata_cut", file=str(self._path), at_byte=position, lost_bytes=len(content) - position)
        return StoredMetadata(image, next_producer_id, is_whole)

    def begin(self, image: MetadataImage, next_producer_id: int) -> None:
        """Rewrite the file atomically. Raises OSError; the old file then stays in use."""
        change = difference(MetadataImage(version=-1, cluster_id=""), image)
        change["next_producer_id"] = next_producer_id
        line = _line(change)
        temporary = self._path.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        descriptor = open_descriptor(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            _write_all(descriptor, line)
            temporary.rename(self._path)
        except OSError:
            close_descriptor(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        if self._descriptor >= 0:
            close_descriptor(self._descriptor)
        self._descriptor = descriptor
        self._image = self._written = image
        self.next_producer_id = next_producer_id
        self._size_bytes = len(line)
        self._rewrite_bytes = max(SMALLEST_REWRITE_BYTES, GROWTH_BEFORE_REWRITE * len(line))

    def write_image(self, image: MetadataImage) -> None:
        """Append the changes of the newest image; they are in the file when this returns.

        A failed write is logged, and repeated with the next change or `write_pending`.
        """
        self._image = image
        self._write()

    def write_next_producer_id(self, next_producer_id: int) -> None:
        """Record that all smaller producer ids are allocated.

        Raises ApiError UNKNOWN_SERVER_ERROR if the write fails: an id must never be allocated twice.
        """
        self.next_producer_id = next_producer_id
        if not self._write():
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Cannot write {self._path}")

    def write_pending(self) -> None:
        """Retry writing changes that could not be written."""
        if self._is_failing:
            self._write()

    def _write(self) -> bool:
        """Write the changes that are missing in the file; return whether it is now complete."""
        change = difference(self._written, self._image)
        change["next_producer_id"] = self.next_producer_id
        try:
            self._append(_line(change))
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                self._log_error("add a line", error)
            return False
        self._written = self._image
        if self._is_failing:
            self._is_failing = False
            log.info("metadata_written_again", file=str(self._path))
        if self._size_bytes > self._rewrite_bytes:
            try:
                self.begin(self._image, self.next_producer_id)
            except OSError as error:  # the old file has everything
                self._rewrite_bytes = GROWTH_BEFORE_REWRITE * self._size_bytes
                self._log_error("rewrite the file", error)
        return True

    def _append(self, line: bytes) -> None:
        """Append a whole line or nothing."""
        if self._is_failing:  # the rest of another line may remain, if truncating the file failed too
            os.ftruncate(self._descriptor, self._size_bytes)
        try:
            _write_all(self._descriptor, line)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)
            raise
        self._size_bytes += len(line)

    def _log_error(self, action: str, error: OSError) -> None:
        log.error("metadata_write_failed", file=str(self._path), action=action, why=error.strerror or str(error))

    def close(self, *, is_whole: bool = True) -> None:
        """Write pending changes and the mark of a closed controller; does nothing the second time.

        Without `is_whole` the next controller assumes that brokers may have later changes.
        """
        if self._descriptor >= 0:
            self.write_pending()
            if is_whole and not self._is_failing:
                with suppress(OSError):
                    change = {"version": self._image.version, "closed": True}
                    self._append(_line(change | {"next_producer_id": self.next_producer_id}))
            close_descriptor(self._descriptor)
            self._descriptor = -1


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _line(change: Mapping[str, Any]) -> bytes:
    text = json.dumps(change, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def _good_lines(content: bytes) -> list[bytes]:
    """Return the lines up to the last undamaged one."""
    *lines, _cut = content.split(b"\n")
    while lines:
        try:
            _read_line(lines[-1])
        except ValueError:
            lines.pop()
        else:
            break
    return lines


def _read_line(line: bytes) -> dict[str, Any]:
    """Return the change of a line. Raises ValueError for a damaged one."""
    crc, _, text = line.partition(b" ")
    if crc != b"%08x" % crc32c(text):
        raise ValueError("wrong CRC")
    change: dict[str, Any] = json.loads(text)
    return change
