"""The hash by which a group detects changes of its topics.

Mirrors `computeTopicHash` and `computeGroupHash` of `org.apache.kafka.coordinator.group.Utils`
(KIP-1101). It is stored in the log, so it must equal Kafka's.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Final

from broker_sim.group.modern.xxh3 import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.metadata.image import MetadataImage, TopicState

_MAGIC: Final = b"\x00"
"""Version of the hash function."""


def topic_hash(topic: TopicState, image: MetadataImage) -> int:
    """Return the hash of a topic's id, name, partitions and replica racks."""
    topic_id = topic.topic_id
    parts = [
        _MAGIC,
        topic_id[7::-1],  # two longs, each in little-endian order
        topic_id[:7:-1],
        _text(topic.name),
        pack("<i", len(topic.partitions)),
    ]
    for number, partition in enumerate(topic.partitions):
        parts.append(pack("<i", number))
        brokers = (image.brokers.get(replica) for replica in partition.replicas)
        racks = sorted(broker.rack for broker in brokers if broker is not None and broker.rack)
        for rack in racks:
            parts.append(pack("<i", len(rack)))
            parts.append(_text(rack))
    return xxh3_64(b"".join(parts))


def group_hash(hashes: Iterable[tuple[str, int]]) -> int:
    """Return the hash of a group from the names and hashes of its topics; 0 if it has none."""
    ordered = sorted(hashes)
    if not ordered:
        return 0
    return xxh3_64(pack(f"<{len(ordered)}q", *(value for _, value in ordered)))


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + pack("<i", len(encoded) // 2)


class TopicHashes:
    """Caches the hashes of subscribed topics.

    As in Kafka, a hash is dropped when its topic changes or is deleted (`forget`). A topic that has changed before
    that call is recognized, because it is another object.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, tuple[TopicState, int]] = {}

    def of(self, names: Iterable[str], image: MetadataImage) -> int:
        """Return the group hash of the topics that exist."""
        hashes = []
        for name in names:
            topic = image.topics.get(name)
            if topic is not None:
                hashes.append((name, self._of_topic(topic, image)))
        return group_hash(hashes)

    def _of_topic(self, topic: TopicState, image: MetadataImage) -> int:
        entry = self._hashes.get(topic.name)
        if entry is not None and entry[0] is topic:
            return entry[1]
        value = topic_hash(topic, image)
        self._hashes[topic.name] = (topic, value)
        return value

    def forget(self, names: Iterable[str]) -> None:
        """Drop the hashes of topics that were changed or deleted."""
        for name in names:
            self._hashes.pop(name, None)
