"""Small text files that are replaced atomically.

Mirrors `CheckpointFile`, `LeaderEpochCheckpointFile` and `PartitionMetadataFile`.

0                     version
2                     number of lines that follow
topic 0 17            offset checkpoints: topic, partition, offset
topic 1 4
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from broker_sim.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.uuids import uuid_text
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.log.storage.batch_scan import LogHistory
    from broker_sim.log.storage.file_system import StoragePath

log = get_logger(__name__)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
_VERSION: Final = "0"
"""Version of all checkpoint files."""
_CONTENT: Final = re.compile(rb"version: 0\s+topic_id: ([A-Za-z0-9_-]{22})\s*")


def replace_file(path: StoragePath, content: bytes) -> None:
    """Replace the file in one step: a kill leaves the old content or the new one.

    Raises OSError with the file's name, even if the system leaves it out, as for a write to a full disk.
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
    """Write a checkpoint file with these lines."""
    body = list(lines)
    replace_file(path, "\n".join([_VERSION, str(len(body)), *body, ""]).encode())


def read_lines(path: StoragePath) -> list[str]:
    """Return the lines of a checkpoint; an empty list if the file does not exist.

    Raises ValueError if the file is not a complete checkpoint of version 0.
    """
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    lines = text.splitlines()
    # A truncated number would be a wrong number, so the last line must end with a line break.
    if lines[:2] != [_VERSION, str(len(lines) - 2)] or not text.endswith("\n"):
        raise ValueError(f"{path} is not a complete checkpoint of version {_VERSION}")
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


def read_leader_epochs(path: StoragePath) -> list[EpochEntry]:
    """Return the entries of `leader-epoch-checkpoint`. Raises ValueError or TypeError for impossible entries."""
    entries = [EpochEntry(*map(int, line.split())) for line in read_lines(path)]
    before = EpochEntry(-1, -1)
    for entry in entries:
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            raise ValueError(f"{entry} follows {before}")
        before = entry
    return entries


def load_leader_epochs(path: StoragePath, history: LogHistory) -> list[EpochEntry]:
    """Return the entries of the file, and newer epochs of recovered batches. Raises OSError.

    A missing or damaged file is replaced by the epochs of all batches.
    """
    why = "there is no such file"
    if path.exists():
        try:
            cache = LeaderEpochCache(read_leader_epochs(path))
        except (ValueError, TypeError) as error:
            why = str(error)
        else:
            for entry in history.recovered_epochs:
                if cache.latest_epoch is None or entry.epoch > cache.latest_epoch:
                    cache.assign(*entry)
            return list(cache.entries)
    if history.epochs:
        log.warning("leader_epochs_rebuilt", file=str(path), why=why)
    return list(history.epochs)


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the content of `partition.metadata`."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}\n".encode()


def read_topic_id(path: StoragePath) -> bytes | None:
    """Return the topic id in `partition.metadata`, None if the file is missing, damaged or unreadable."""
    try:
        content = _CONTENT.fullmatch(path.read_bytes())
    except OSError:
        return None
    return None if content is None else base64.urlsafe_b64decode(content[1] + b"==")
