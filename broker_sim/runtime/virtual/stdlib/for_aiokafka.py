"""What aiokafka needs so that its runs repeat: the few places where it asks nobody who can be replaced.

aiokafka itself stays as it is installed; outside of virtual time nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.current import current_loop
from broker_sim.runtime.virtual.stdlib.importing import when_imported

if TYPE_CHECKING:
    from collections.abc import KeysView

__all__ = ["prepare_aiokafka"]


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


def _numbered_hash(batch: Any) -> int:
    """Return a number as a batch's hash: a sender that fails iterates a set of them."""
    number: int | None = getattr(batch, "_virtual_number", None)
    if number is None:
        loop = current_loop()
        number = object.__hash__(batch) if loop is None else loop.next_number()
        batch._virtual_number = number
    return number
