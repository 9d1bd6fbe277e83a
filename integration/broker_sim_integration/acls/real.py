"""The table's broker as a real one in a container: one KRaft node with Kafka's own authorizer.

The client and the super user log in by SASL, the super user at the node's inter-broker listener.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, response_class
from broker_sim_integration.acls.simulated import CONFIGS
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.reference.clusters.single_node import single_node
from broker_sim_integration.reference.clusters.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.protocol.message import Message

WAIT_MS = 30_000
PAUSE_MS = 5
_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="admin" password="admin" user_admin="admin" user_alice="alice";'
)


PROTOCOLS = dict.fromkeys(("CONTROLLER", "CLIENT", "ADMIN"), "SASL_PLAINTEXT")
PROPERTIES = {
    **CONFIGS,
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": _LOGIN,
    "listener.name.admin.plain.sasl.jaas.config": _LOGIN,
    "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
}


class RealBroker:
    """A `TableBroker`; a context manager that removes the container."""

    principal = "User:alice"

    def __enter__(self) -> Self:
        self._cleanup = ExitStack()
        node = self._cleanup.enter_context(single_node(PROTOCOLS, "CLIENT", "ADMIN", PROPERTIES))
        try:
            client_port, admin_port = node.ports["CLIENT"], node.ports["ADMIN"]
            self._client = self._cleanup.enter_context(RawConnection("127.0.0.1", client_port))
            self._admin = self._cleanup.enter_context(RawConnection("127.0.0.1", admin_port))
            _log_in(self._client, b"\0alice\0alice")
            _log_in(self._admin, b"\0admin\0admin")
            self.host = node.host_of_clients
        except BaseException:
            self._cleanup.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def ask(self, message: Message, version: int) -> Any:
        """Return the client's response."""
        return _ask(self._client, message, version)

    def ask_as_admin(self, message: Message, version: int) -> Any:
        """Return the super user's response."""
        return _ask(self._admin, message, version)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` is true."""
        wait_until(condition, "the table", timeout_ms=WAIT_MS, interval_ms=PAUSE_MS)


def _log_in(connection: RawConnection, token: bytes) -> None:
    _ask(connection, messages.SaslHandshakeRequest("PLAIN"), 1)
    answer = _ask(connection, messages.SaslAuthenticateRequest(token), 2)
    assert not answer.error_code, answer


def _ask(connection: RawConnection, message: Message, version: int) -> Any:
    assert message.API_KEY is not None
    return connection.request(message, version, response_class(ApiKey(message.API_KEY))).message
