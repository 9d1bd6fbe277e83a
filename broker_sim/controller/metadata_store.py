"""What the controller decides, in a file; it stands for Kafka's log `__cluster_metadata`.

One line of JSON for every new image, with what has changed since the line before:

    0b1c2d3e {"version": 7, "topics": {"t": {"id": "...", "configs": {}, "partitions": {"0": [...]}}}}

Before it stands the CRC-32C of the JSON. The first line has all there is. A line that a kill has cut is the last one, and is dropped: nobody had
heard of its image. The file is written anew when it is opened, and when it has grown large.

Deliberate difference: Kafka's file is a log of record batches in `__cluster_metadata-0`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crc32c import crc32c

from broker_sim.errors import ConfigError
from broker_sim.metadata import BrokerState, MetadataImage, PartitionState, TopicState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MetadataStore", "StoredMetadata"]

SMALLEST_REWRITE_BYTES: Final = 4 * 1024 * 1024
GROWTH_BEFORE_REWRITE: Final = 4


class StoredMetadata(NamedTuple):
    """What a controller begins with after a restart."""

    image: MetadataImage
    next_producer_id: int


class MetadataStore:
    """The file of one controller. Thread rule: only the scheduler's thread."""

    def __init__(self, path: Path) -> None:
        """Name the file; `load` reads it, `begin` opens it for writing."""
        self._path = path
        self._descriptor = -1
        self._image = MetadataImage(version=-1, cluster_id="")
        self._next_producer_id = 0
        self._size_bytes = 0
        self._rewrite_bytes = SMALLEST_REWRITE_BYTES

    def load(self) -> StoredMetadata | None:
        """Return the last image and producer id, or None if there is no file.

        Raises ConfigError, with the place, for a file in which a whole line is damaged.
        """
        if not self._path.exists():
            return None
        image, next_producer_id = MetadataImage(version=-1, cluster_id=""), 0
        *whole, _cut = self._path.read_bytes().split(b"\n")
        position = 0
        for number, line in enumerate(whole, 1):
            try:
                change = _read_line(line)
                image = _changed(image, change)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise ConfigError(
                    f"{self._path} is damaged in line {number}, at byte {position}: {error!r}; take "
                    "another directory, or a copy of this one"
                ) from error
            next_producer_id = change.get("next_producer_id", next_producer_id)
            position += len(line) + 1
        return StoredMetadata(image, next_producer_id)

    def begin(self, image: MetadataImage, next_producer_id: int) -> None:
        """Write the file anew, in one step even for a kill."""
        self.close()
        self._image, self._next_producer_id = image, next_producer_id
        change = _difference(MetadataImage(version=-1, cluster_id=""), image)
        change["next_producer_id"] = next_producer_id
        temporary = self._path.with_suffix(".tmp")
        temporary.write_bytes(_line(change))
        temporary.rename(self._path)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size_bytes = self._path.stat().st_size
        self._rewrite_bytes = max(SMALLEST_REWRITE_BYTES, GROWTH_BEFORE_REWRITE * self._size_bytes)

    def write_image(self, image: MetadataImage) -> None:
        """Add the changes of the newest image; it is kept when this returns."""
        change = _difference(self._image, image)
        self._image = image  # what a rewrite of the file begins with
        self._write(change)

    def write_next_producer_id(self, next_producer_id: int) -> None:
        """Add that all smaller producer ids are given away."""
        self._next_producer_id = next_producer_id
        self._write({"version": self._image.version, "next_producer_id": next_producer_id})

    def _write(self, change: dict[str, Any]) -> None:
        line = _line(change)
        os.write(self._descriptor, line)
        self._size_bytes += len(line)
        if self._size_bytes > self._rewrite_bytes:
            self.begin(self._image, self._next_producer_id)

    def close(self) -> None:
        """Close the file; does nothing the second time."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _line(change: Mapping[str, Any]) -> bytes:
    text = json.dumps(change, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def _read_line(line: bytes) -> dict[str, Any]:
    """Return the change of a line. Raises ValueError for one that is not as it was written."""
    crc, _, text = line.partition(b" ")
    if crc != b"%08x" % crc32c(text):
        raise ValueError("its CRC does not fit")
    change: dict[str, Any] = json.loads(text)
    return change


def _difference(before: MetadataImage, after: MetadataImage) -> dict[str, Any]:
    """Return what makes `after` from `before`; what is the same object has not changed."""
    change: dict[str, Any] = {"version": after.version}
    if before.cluster_id != after.cluster_id:
        change["cluster_id"] = after.cluster_id
    if before.brokers is not after.brokers:
        change["brokers"] = [_broker_row(broker) for broker in after.brokers.values()]
    if before.topics is not after.topics:
        change["topics"] = {
            name: _topic_difference(before.topics.get(name), topic)
            for name, topic in after.topics.items()
            if before.topics.get(name) is not topic
        }
        change["removed"] = [name for name in before.topics if name not in after.topics]
    if before.broker_configs is not after.broker_configs:
        change["broker_configs"] = {
            name: dict(configs) for name, configs in after.broker_configs.items()
        }
    if before.features is not after.features:
        change["features"] = dict(after.features)
    if before.resource_configs is not after.resource_configs:
        change["resource_configs"] = [
            [code, name, dict(configs)] for (code, name), configs in after.resource_configs.items()
        ]
    return change


def _topic_difference(before: TopicState | None, after: TopicState) -> dict[str, Any]:
    known = before.partitions if before is not None and before.topic_id == after.topic_id else ()
    return {
        "id": after.topic_id.hex(),
        "configs": dict(after.configs),
        "partitions": {
            number: _partition_row(state)
            for number, state in enumerate(after.partitions)
            if number >= len(known) or known[number] is not state
        },
    }


def _partition_row(state: PartitionState) -> list[Any]:
    return [
        state.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.elr,
        state.last_known_elr,
        state.recovering,
        state.adding_replicas,
        state.removing_replicas,
    ]


def _partition(row: list[Any]) -> PartitionState:
    fields: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
    return PartitionState(*fields)


def _broker_row(broker: BrokerState) -> list[Any]:
    return [
        broker.broker_id,
        broker.host,
        broker.port,
        broker.rack,
        broker.epoch,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.incarnation_id.hex(),
    ]


def _broker(row: list[Any]) -> BrokerState:
    broker_id, host, port, rack, epoch, fenced, in_controlled_shutdown, incarnation_id = row
    return BrokerState(
        broker_id,
        host,
        port,
        rack,
        epoch=epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        incarnation_id=bytes.fromhex(incarnation_id),
    )


def _changed(image: MetadataImage, change: dict[str, Any]) -> MetadataImage:
    brokers, topics = image.brokers, dict(image.topics)
    if "brokers" in change:
        brokers = {broker.broker_id: broker for broker in map(_broker, change["brokers"])}
    for name in change.get("removed", ()):
        del topics[name]
    for name, topic in change.get("topics", {}).items():
        topics[name] = _changed_topic(topics.get(name), name, topic)
    resources = image.resource_configs
    if "resource_configs" in change:
        resources = {(code, name): configs for code, name, configs in change["resource_configs"]}
    return MetadataImage(
        change["version"],
        change.get("cluster_id", image.cluster_id),
        brokers,
        topics,
        {topic.topic_id: name for name, topic in topics.items()},
        change.get("broker_configs", image.broker_configs),
        change.get("features", image.features),
        resources,
    )


def _changed_topic(before: TopicState | None, name: str, change: dict[str, Any]) -> TopicState:
    topic_id = bytes.fromhex(change["id"])
    partitions: dict[int, PartitionState] = {}
    if before is not None and before.topic_id == topic_id:
        partitions.update(enumerate(before.partitions))
    for number, row in change["partitions"].items():
        partitions[int(number)] = _partition(row)
    return TopicState(
        name,
        topic_id,
        tuple(partitions[number] for number in range(len(partitions))),
        change["configs"],
    )
