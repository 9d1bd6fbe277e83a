"""What a handler is given: the request's context, the broker's services, and a way to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig, TopicConfig
    from broker_sim.handlers.controller_channel import ControllerChannel
    from broker_sim.handlers.producer_ids import ProducerIds
    from broker_sim.metadata import MetadataImage, TopicState
    from broker_sim.replica import ReplicaManager
    from purgatory import Clock

    Reply = Callable[[Any], None]
    Handler = Callable[["Services", Any, "RequestContext", Reply], None]

__all__ = ["RequestContext", "Services"]


@dataclass(slots=True)
class RequestContext:
    """Where a request comes from and how its connection may be ended."""

    api_key: int
    api_version: int
    client_id: str | None
    no_response: Callable[[], None]
    """End the request without an answer (acks=0)."""
    close_connection: Callable[[str], None]
    """Close the connection; the text says why."""


class Services(Protocol):
    """The parts of a broker that handlers use."""

    @property
    def broker_id(self) -> int:
        """The broker that serves the request."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's static configuration."""

    @property
    def random(self) -> random.Random:
        """The only source of chance."""

    @property
    def replica_manager(self) -> ReplicaManager:
        """The partitions on this broker."""

    @property
    def controller(self) -> ControllerChannel:
        """The way to the controller."""

    @property
    def producer_ids(self) -> ProducerIds:
        """Ids for idempotent producers."""

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this broker has heard of."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    def topic_config(self, topic: TopicState) -> TopicConfig:
        """Return the configuration in force for the topic on this broker."""
