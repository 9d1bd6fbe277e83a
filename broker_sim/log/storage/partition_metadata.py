"""The file that says of which topic a log is; mirrors `PartitionMetadataFile`.

version: 0
topic_id: AAECAwQFBgcICQoLDA0ODw
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.log.storage.file_system import StoragePath

PARTITION_METADATA: Final = "partition.metadata"


_CONTENT: Final = re.compile(rb"version: 0\s+topic_id: ([A-Za-z0-9_-]{22})\s*")


def encode_id(raw: bytes) -> str:
    """Return an id as Kafka writes it."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the content of the file."""
    return f"version: 0\ntopic_id: {encode_id(topic_id)}\n".encode()


def read_topic_id(path: StoragePath) -> bytes | None:
    """Return the id that the file has, None if there is no file that can be read, or it is damaged."""
    try:
        found = _CONTENT.fullmatch(path.read_bytes())
    except OSError:
        return None
    return None if found is None else base64.urlsafe_b64decode(found[1] + b"==")
