"""Clients of one scenario: raw connections to one broker, and clients of confluent-kafka.

confluent-kafka is imported only when a scenario opens its first client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim_integration.clients.broker_client import BrokerClient
from broker_sim_integration.cluster_under_test.polling import poll_until

if TYPE_CHECKING:
    from contextlib import ExitStack

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.user_client import UserConsumer, UserProducer
    from broker_sim_integration.cluster_under_test.brokers import Brokers


class Clients:
    """Opens clients, which `cleanup` closes at the end of the scenario."""

    def __init__(self, bootstrap_servers: str, brokers: Brokers, cleanup: ExitStack) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._brokers = brokers
        self._cleanup = cleanup
        self._shared: dict[int, BrokerClient] = {}

    def connect(self, broker: int) -> BrokerClient:
        """Open a new connection to a broker."""
        return self._cleanup.enter_context(BrokerClient(*self._brokers.address(broker)))

    def ask(self, broker: int) -> BrokerClient:
        """Return the shared connection to a broker for preparations, whose responses are not timed."""
        client = self._shared.get(broker)
        if client is None or client.ended.is_set():
            client = self._shared[broker] = self.connect(broker)
        return client

    def producer(self, **configs: str | int) -> UserProducer:
        """Return a producer of confluent-kafka; underscores in names of configurations stand for dots."""
        from broker_sim_integration.clients.user_client import UserProducer  # noqa: PLC0415 - an extra

        named = {key.replace("_", "."): value for key, value in configs.items()}
        return self._cleanup.enter_context(UserProducer(self._bootstrap_servers, named))

    def consumer(self, **configs: str | int) -> UserConsumer:
        """Return a consumer of confluent-kafka, configured as in `producer`."""
        from broker_sim_integration.clients.user_client import UserConsumer  # noqa: PLC0415 - an extra

        named = {key.replace("_", "."): value for key, value in configs.items()}
        return self._cleanup.enter_context(UserConsumer(self._bootstrap_servers, named))

    def producer_id(self) -> int:
        """Return a new producer id; waits, because a broker that has just started may not have any yet."""
        answers: list[messages.InitProducerIdResponse] = []

        def given() -> bool:
            answers.append(self.ask(self._brokers.first).init_producer_id())
            return answers[-1].error_code == ErrorCode.NONE

        poll_until(given, "a producer id is given")
        return answers[-1].producer_id
