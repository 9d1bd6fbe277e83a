"""The context that all parts of one broker share, from its start until it stops or is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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


class BrokerContext(NamedTuple):
    """A broker's id, configuration, process, random numbers, metadata, logs, and links to other brokers."""

    broker_id: int
    config: BrokerConfig
    process: Process
    """Runs the broker's callbacks and serves its requests."""
    logs: LogManager
    metadata: MetadataCache
    random: random.Random
    links: Links
    broker_epoch: Callable[[], int]
    """Returns the broker epoch of the current registration, -1 before the broker is registered."""
    purgatory: Callable[[str], DelayedOperationPurgatory[Any]]
    """Returns the broker's purgatory with that name; the first call creates it."""
    release: Release
    """The Kafka release that the broker simulates."""
    storage: Callable[[str, int], CoordinatorStorage]
    """`storage(topic, read_bytes)` returns an internal topic's partitions; loading reads `read_bytes` at a time."""

    @property
    def clock(self) -> Clock:
        """The broker's clock: `now_ms` for timeouts, `wall_clock_ms` for timestamps in records."""
        return self.process.clock

    @property
    def call_later(self) -> CallLater:
        """Schedules callbacks in the broker's process; see `CallLater`."""
        return self.process.call_later

    def image(self) -> MetadataImage:
        """Return the newest metadata image that the broker has received."""
        return self.metadata.image

    def sender(
        self,
        serve: Callable[[int, Request, Callable[[Response], object]], object],
        api_of: Callable[[Request], str],
    ) -> InterBrokerSender[Request, Response]:
        """Return a sender of requests of one kind to other brokers; see `InterBrokerSender`."""
        return InterBrokerSender(
            self.broker_id,
            self.process.call_later,
            self.process.clock,
            self.links,
            self.config.request_timeout_ms,
            serve,
            api_of,
        )
