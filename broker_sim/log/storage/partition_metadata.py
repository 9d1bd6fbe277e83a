"""The file that says of which topic a log is; mirrors `PartitionMetadataFile`.

version: 0
topic_id: AAECAwQFBgcICQoLDA0ODw
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PARTITION_METADATA", "encode_id", "encode_partition_metadata", "read_topic_id"]

PARTITION_METADATA: Final = "partition.metadata"


def encode_id(raw: bytes) -> str:
    """Return an id as Kafka writes it."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the content of the file."""
    return f"version: 0\ntopic_id: {encode_id(topic_id)}\n".encode()


def read_topic_id(path: Path) -> bytes:
    """Return the id that the file has. Raises ConfigError for a file without one, and OSError."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == "topic_id":
            return base64.urlsafe_b64decode(f"{value.strip()}==")
    raise ConfigError(f"{path} does not name the topic's id")
