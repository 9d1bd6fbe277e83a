"""The context that all parts of one broker share, from the broker's start to its death."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from broker_sim.runtime.inter_broker import InterBrokerSender

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim_purgatory import Clock, DelayedOperationPurgatory

    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.storage import CoordinatorStorage
    from broker_sim.log import LogManager
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.protocol.release import Release
    from broker_sim.runtime.links import Links
    from broker_sim.runtime.process import CallLater, Process

Request = TypeVar("Request")
Response = TypeVar("Response")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerContext:
    """A broker's id and configuration, its process, chance, metadata and logs, and its links to other brokers."""

    broker_id: int
    config: BrokerConfig
    process: Process
    """Runs the broker's callbacks and serves its requests."""
    logs: LogManager
    metadata: MetadataCache
    random: random.Random
    links: Links
    broker_epoch: Callable[[], int]
    """Returns the epoch of this life, -1 before the broker is registered."""
    purgatory: Callable[[str], DelayedOperationPurgatory[Any]]
    """Returns the broker's purgatory of that name, which the first call makes."""
    release: Release
    """The release of Kafka that the broker is."""
    storage: Callable[[str, int], CoordinatorStorage]
    """`storage(topic, read_bytes)` returns the partitions of an internal topic; loading reads `read_bytes` at once."""

    @property
    def clock(self) -> Clock:
        """The broker's clock: `now_ms` for waits, `wall_clock_ms` for what is written into records."""
        return self.process.clock

    @property
    def call_later(self) -> CallLater:
        """Runs callbacks later in the broker's process."""
        return self.process.call_later

    def image(self) -> MetadataImage:
        """Return the newest metadata that the broker has heard of."""
        return self.metadata.image

    def sender(
        self, serve: Callable[[int, Request, Callable[[Response], object]], object]
    ) -> InterBrokerSender[Request, Response]:
        """Return a sender of requests of one kind to other brokers; see `InterBrokerSender`."""
        return InterBrokerSender(
            self.broker_id,
            self.process.call_later,
            self.process.clock,
            self.links,
            self.config.request_timeout_ms,
            serve,
        )
