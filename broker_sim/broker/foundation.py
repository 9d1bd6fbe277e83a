"""What the parts of a broker are made on: its node, its process, its metadata and its purgatories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from broker_sim.runtime.inter_broker_sender import InterBrokerSender

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.config import BrokerConfig
    from broker_sim.log import LogManager
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.replica import Purgatories
    from broker_sim.runtime.process import Process

Request = TypeVar("Request")
Response = TypeVar("Response")


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The same for all parts of a broker in one of its lives."""

    broker_id: int
    config: BrokerConfig
    process: Process
    logs: LogManager
    environment: BrokerEnvironment
    metadata: MetadataCache
    purgatories: Purgatories
    broker_epoch: Callable[[], int]
    """Returns the epoch of this life, -1 before the broker is registered."""

    def make_sender(
        self, serve: Callable[[int, Request, Callable[[Response], object]], object]
    ) -> InterBrokerSender[Request, Response]:
        """Return what sends requests of one kind to other brokers; see `InterBrokerSender`."""
        return InterBrokerSender(
            self.broker_id,
            self.process.call_later,
            self.process.clock,
            self.environment.links,
            self.config.request_timeout_ms,
            serve,
        )
