"""Small text files that are replaced whole; mirrors `CheckpointFile` and its formats.

0                     version
2                     number of lines that follow
topic 0 17            offset checkpoints: topic, partition, offset
topic 1 4             leader epochs: epoch, start offset
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.log.storage.file_system import StoragePath

_VERSION: Final = "0"


def replace_file(path: StoragePath, content: bytes) -> None:
    """Replace the file in one step: a kill leaves the old content or the new one.

    Raises OSError that names the file, also where the system does not: a write to a full disk.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        if error.filename is None:
            error.filename = str(temporary)
        raise


def write_lines(path: StoragePath, lines: Iterable[str]) -> None:
    """Write a checkpoint of these lines."""
    body = list(lines)
    replace_file(path, "\n".join([_VERSION, str(len(body)), *body, ""]).encode())


def read_lines(path: StoragePath) -> list[str]:
    """Return the lines of a checkpoint, none if there is no such file.

    Raises ValueError for a file that is no whole checkpoint of version 0.
    """
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    lines = text.splitlines()
    # A number that is cut is another number: the end of the last line says that it is whole.
    if lines[:2] != [_VERSION, str(len(lines) - 2)] or not text.endswith("\n"):
        raise ValueError(f"{path} is no whole checkpoint of version {_VERSION}")
    return lines[2:]


def write_offsets(path: StoragePath, offsets: Mapping[TopicPartition, int]) -> None:
    """Write a checkpoint of one offset for each partition."""
    write_lines(path, (f"{key.topic} {key.partition} {value}" for key, value in offsets.items()))


def read_offsets(path: StoragePath) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint by partition. Raises ValueError as `read_lines`."""
    offsets = {}
    for line in read_lines(path):
        topic, partition, offset = line.split()
        offsets[TopicPartition(topic, int(partition))] = int(offset)
    return offsets
