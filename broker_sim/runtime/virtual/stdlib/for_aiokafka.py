"""What aiokafka needs so that its runs repeat: the few places where it asks nobody who can be replaced.

aiokafka itself stays as it is installed; outside of virtual time nothing changes.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.loop import current_loop
from broker_sim.runtime.virtual.stdlib.importing import when_imported

if TYPE_CHECKING:
    from collections.abc import KeysView


def prepare_aiokafka() -> None:
    """Prepare aiokafka for one run, now or when the program imports it."""
    when_imported("aiokafka", _prepare)


def _prepare(aiokafka: Any) -> None:
    # The process counts the clients without a name; a second run must not have other names.
    aiokafka.AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE = 0
    accumulator = aiokafka.producer.message_accumulator
    if getattr(accumulator.BatchBuilder.append, "is_of_virtual_time", False):
        return
    accumulator.BatchBuilder.append = _with_time(accumulator.BatchBuilder.append)
    accumulator.MessageBatch.__hash__ = _numbered_hash
    metadata = aiokafka.cluster.ClusterMetadata
    metadata.brokers = _in_order(metadata.brokers)
    versions = getattr(aiokafka.protocol.admin, "ApiVersionResponse_v0", None)
    if versions is not None:
        versions.decode = classmethod(_remembering(versions.SCHEMA))


def _with_time(append: Any) -> Any:
    """Give records their time: the C extension asks the C library, and gets real time."""

    def append_with_time(self: Any, *, timestamp: int | None, **rest: Any) -> Any:
        loop = current_loop()
        if timestamp is None and loop is not None:
            timestamp = loop.clock.wall_clock_ms()
        return append(self, timestamp=timestamp, **rest)

    append_with_time.is_of_virtual_time = True  # type: ignore[attr-defined]
    return append_with_time


def _in_order(brokers: Any) -> Any:
    """Return the brokers by id: a set of tuples with None, whose hash is an address before 3.12."""

    def ordered_brokers(self: Any) -> KeysView[Any] | set[Any]:
        found: set[Any] = brokers(self)
        if current_loop() is None:
            return found
        return dict.fromkeys(sorted(found, key=lambda broker: str(broker.nodeId))).keys()

    return ordered_brokers


def _remembering(schema: Any) -> Any:
    """Decode an answer once: each new connection asks which APIs there are, and brokers answer alike."""

    @lru_cache(maxsize=16)
    def decoded(data: bytes) -> tuple[int, tuple[Any, ...]]:
        error_code, apis = schema.decode(BytesIO(data))
        return error_code, tuple(apis)

    def decode(response: Any, data: BytesIO | bytes) -> Any:
        error_code, apis = decoded(data if isinstance(data, bytes) else data.read())
        return response(error_code, list(apis))

    return decode


def _numbered_hash(batch: Any) -> int:
    """Return a number as a batch's hash: a sender that fails iterates a set of them."""
    number: int | None = getattr(batch, "_virtual_number", None)
    if number is None:
        loop = current_loop()
        number = object.__hash__(batch) if loop is None else loop.core.next_number()
        batch._virtual_number = number
    return number
