"""What a handler is given: the request's context, the broker's services, and a way to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig, TopicConfig
    from broker_sim.handlers.controller_channel import ControllerChannel
    from broker_sim.handlers.transactions.producer_ids import ProducerIds
    from broker_sim.metadata import MetadataImage, TopicState
    from broker_sim.replica import ReplicaManager
    from purgatory import Clock

    Reply = Callable[[Any], None]
    Handler = Callable[["Services", Any, "RequestContext", Reply], None]

__all__ = ["RequestContext", "Services"]


class RequestContext:
    """Where a request comes from and how its connection may be ended.

    ``no_response()`` ends the request without an answer (acks=0); ``close_connection(reason)``
    closes the connection.
    """

    __slots__ = ("api_key", "api_version", "client_id", "close_connection", "no_response")

    def __init__(
        self,
        api_key: int,
        api_version: int,
        client_id: str | None,
        no_response: Callable[[], None],
        close_connection: Callable[[str], None],
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.no_response = no_response
        self.close_connection = close_connection

    def ending_with(self, no_response: Callable[[], None]) -> RequestContext:
        """Return the same context with another way to end it without an answer."""
        return RequestContext(
            self.api_key, self.api_version, self.client_id, no_response, self.close_connection
        )


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
