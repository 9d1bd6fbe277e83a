"""What the controller decides, in a file; it stands for Kafka's log `__cluster_metadata`.

One line of JSON for every new image, with what has changed since the line before:

    0b1c2d3e {"version": 7, "topics": {"t": {"id": "...", "configs": {}, "partitions": {"0": [...]}}}}

Before it stands the CRC-32C of the JSON. The first line is a full snapshot; the last one of a controller that was
closed says so. The file is written anew when it is opened, and when it has grown large.

A kill may cut the last line, of which nobody had heard; a power loss may take lines that brokers have acted on,
because they are not synced. The file is cut at its last good line, and this is logged. A damaged line before good
ones is no such loss, and is refused.

When a line cannot be written (a full disk), the file is cut back to its last whole line. The line that is
written next has what this one had: each has the difference to the image that the file has.

Deliberate differences: Kafka's file is a log of record batches in `__cluster_metadata-0`. And Kafka's active
controller resigns when it cannot write, so that another one leads; here is no other one, so it goes on.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crc32c import crc32c

from broker_sim.config import Endpoint
from broker_sim.errors import ApiError, ConfigError, ErrorCode
from broker_sim.metadata import (
    BrokerState,
    MetadataImage,
    PartitionState,
    ScramCredential,
    TopicState,
)
from broker_sim.metadata.acl import (
    Acl,
    AclOperation,
    Acls,
    PatternType,
    Permission,
    ResourceType,
)
from broker_sim.metadata.delegation_token import DelegationToken
from broker_sim.metadata.kafka_principal import KafkaPrincipal
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker_sim.metadata.quota_entity import QuotaEntity

__all__ = ["MetadataStore", "StoredMetadata"]

SMALLEST_REWRITE_BYTES: Final = 4 * 1024 * 1024
GROWTH_BEFORE_REWRITE: Final = 4
_ADVICE: Final = "take another directory, or a copy of this one"

log = get_logger(__name__)


class StoredMetadata(NamedTuple):
    """What a controller begins with after a restart."""

    image: MetadataImage
    next_producer_id: int
    is_whole: bool
    """Whether the controller was closed and nothing is lost; else brokers may know of later changes."""


class MetadataStore:
    """The file of one controller. Thread rule: only the scheduler's thread."""

    def __init__(self, path: Path) -> None:
        """Name the file; `load` reads it, `begin` opens it for writing."""
        self._path = path
        self._descriptor = -1
        self._image = MetadataImage(version=-1, cluster_id="")
        """The newest image."""
        self._written = self._image
        """The image that the file has."""
        self._next_producer_id = 0
        self._size_bytes = 0
        """The whole lines of the file."""
        self._rewrite_bytes = SMALLEST_REWRITE_BYTES
        self._is_failing = False

    def load(self) -> StoredMetadata | None:
        """Return the last image and producer id, or None if there is no file.

        Raises ConfigError, with the place, for a file in which a whole line is damaged.
        """
        if not self._path.exists():
            return None
        image, next_producer_id, is_whole = MetadataImage(version=-1, cluster_id=""), 0, False
        content = self._path.read_bytes()
        lines = _good_lines(content)
        if not lines:
            raise ConfigError(f"{self._path} has no whole line; {_ADVICE}")
        position = 0
        for number, line in enumerate(lines, 1):
            try:
                change = _read_line(line)
                image = _changed(image, change)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise ConfigError(
                    f"{self._path} is damaged in line {number}, at byte {position}: {error!r}; "
                    f"{_ADVICE}"
                ) from error
            next_producer_id = change.get("next_producer_id", next_producer_id)
            is_whole = change.get("closed", False)
            position += len(line) + 1
        if position < len(content):
            log.warning(
                "metadata_cut",
                file=str(self._path),
                at_byte=position,
                lost_bytes=len(content) - position,
            )
        return StoredMetadata(image, next_producer_id, is_whole)

    def begin(self, image: MetadataImage, next_producer_id: int) -> None:
        """Write the file anew, in one step even for a kill. Raises OSError; the old file is used on then."""
        change = _difference(MetadataImage(version=-1, cluster_id=""), image)
        change["next_producer_id"] = next_producer_id
        line = _line(change)
        temporary = self._path.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        try:
            _write_all(descriptor, line)
            temporary.rename(self._path)
        except OSError:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._image = self._written = image
        self._next_producer_id = next_producer_id
        self._size_bytes = len(line)
        self._rewrite_bytes = max(SMALLEST_REWRITE_BYTES, GROWTH_BEFORE_REWRITE * len(line))

    def write_image(self, image: MetadataImage) -> None:
        """Add the changes of the newest image; it is kept when this returns.

        An image that cannot be written is logged, and is written with the next change or `write_pending`.
        """
        self._image = image
        self._write()

    def write_next_producer_id(self, next_producer_id: int) -> None:
        """Add that all smaller producer ids are given away.

        Raises ApiError UNKNOWN_SERVER_ERROR if that cannot be written: an id must never be given twice.
        """
        self._next_producer_id = next_producer_id
        if not self._write():
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Cannot write {self._path}")

    def write_pending(self) -> None:
        """Try again to write what could not be written."""
        if self._is_failing:
            self._write()

    def _write(self) -> bool:
        """Write what the file does not have yet; return whether it has everything now."""
        change = _difference(self._written, self._image)
        change["next_producer_id"] = self._next_producer_id
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
                self.begin(self._image, self._next_producer_id)
            except OSError as error:  # the old file has everything
                self._rewrite_bytes = GROWTH_BEFORE_REWRITE * self._size_bytes
                self._log_error("write the file anew", error)
        return True

    def _append(self, line: bytes) -> None:
        """Add a whole line or nothing."""
        if self._is_failing:  # what is left of another line, if the file could not even be cut
            os.ftruncate(self._descriptor, self._size_bytes)
        try:
            _write_all(self._descriptor, line)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)
            raise
        self._size_bytes += len(line)

    def _log_error(self, action: str, error: OSError) -> None:
        log.error(
            "metadata_write_failed",
            file=str(self._path),
            action=action,
            why=error.strerror or str(error),
        )

    def close(self) -> None:
        """Write what is pending and close the file; does nothing the second time."""
        if self._descriptor >= 0:
            self.write_pending()
            if not self._is_failing:
                with suppress(OSError):
                    self._append(_line({"version": self._image.version, "closed": True}))
            os.close(self._descriptor)
            self._descriptor = -1


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _line(change: Mapping[str, Any]) -> bytes:
    text = json.dumps(change, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def _good_lines(content: bytes) -> list[bytes]:
    """Return the lines up to the last one that is as it was written."""
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
    return change | _access_difference(before, after)


def _access_difference(before: MetadataImage, after: MetadataImage) -> dict[str, Any]:
    """Return what has changed of who clients are, and what they may do."""
    change: dict[str, Any] = {}
    if before.scram is not after.scram:
        change["scram"] = [
            _credential_row(user, mechanism, credential)
            for user, credentials in after.scram.items()
            for mechanism, credential in credentials.items()
        ]
    if before.client_quotas is not after.client_quotas:
        change["client_quotas"] = [
            [entity, quotas] for entity, quotas in after.client_quotas.items()
        ]
    if before.delegation_tokens is not after.delegation_tokens:
        change["delegation_tokens"] = list(after.delegation_tokens.values())
    if before.acls is not after.acls:
        change["acls"] = [acl for acl in after.acls if acl not in before.acls]
        change["removed_acls"] = [acl for acl in before.acls if acl not in after.acls]
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
        broker.endpoints,
        broker.rack,
        broker.epoch,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.incarnation_id.hex(),
    ]


def _broker(row: list[Any]) -> BrokerState:
    broker_id, endpoints, rack, epoch, fenced, in_controlled_shutdown, incarnation_id = row
    return BrokerState(
        broker_id,
        tuple(Endpoint(*endpoint) for endpoint in endpoints),
        rack,
        epoch=epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        incarnation_id=bytes.fromhex(incarnation_id),
    )


def _credential_row(user: str, mechanism: int, credential: ScramCredential) -> list[Any]:
    keys = (credential.salt, credential.stored_key, credential.server_key)
    return [user, mechanism, credential.iterations, *(key.hex() for key in keys)]


def _credentials(rows: list[list[Any]]) -> dict[str, dict[int, ScramCredential]]:
    users: dict[str, dict[int, ScramCredential]] = {}
    for user, mechanism, iterations, *keys in rows:
        salt, stored_key, server_key = map(bytes.fromhex, keys)
        credential = ScramCredential(salt, stored_key, server_key, iterations)
        users.setdefault(user, {})[mechanism] = credential
    return users


def _client_quotas(change: dict[str, Any]) -> dict[QuotaEntity, dict[str, float]]:
    return {
        tuple((kind, name) for kind, name in entity): quotas
        for entity, quotas in change["client_quotas"]
    }


def _tokens(change: dict[str, Any]) -> dict[str, DelegationToken]:
    tokens = (
        DelegationToken(
            token_id,
            KafkaPrincipal(*owner),
            KafkaPrincipal(*requester),
            tuple(KafkaPrincipal(*renewer) for renewer in renewers),
            *times,
        )
        for token_id, owner, requester, renewers, *times in change["delegation_tokens"]
    )
    return {token.token_id: token for token in tokens}


def _acl(row: list[Any]) -> Acl:
    resource_type, resource_name, pattern_type, principal, host, operation, permission = row
    return Acl(
        ResourceType(resource_type),
        resource_name,
        PatternType(pattern_type),
        principal,
        host,
        AclOperation(operation),
        Permission(permission),
    )


def _changed_acls(acls: Acls, change: dict[str, Any]) -> Acls:
    added, removed = (list(map(_acl, change.get(key, ()))) for key in ("acls", "removed_acls"))
    return acls.with_changes(added, removed) if added or removed else acls


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
    scram = _credentials(change["scram"]) if "scram" in change else image.scram
    return MetadataImage(
        change["version"],
        change.get("cluster_id", image.cluster_id),
        brokers,
        topics,
        {topic.topic_id: name for name, topic in topics.items()},
        change.get("broker_configs", image.broker_configs),
        change.get("features", image.features),
        resources,
        scram,
        _changed_acls(image.acls, change),
        _client_quotas(change) if "client_quotas" in change else image.client_quotas,
        _tokens(change) if "delegation_tokens" in change else image.delegation_tokens,
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
