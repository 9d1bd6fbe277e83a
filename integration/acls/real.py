"""The table's broker as a real one in a container: one KRaft node with Kafka's own authorizer.

Its listener for clients is PLAINTEXT, so a client is User:ANONYMOUS. The super user logs in by SASL at
another one, which the node uses for itself too.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, response_class
from integration.acls.simulated import CONFIGS
from integration.clients.raw_client import RawConnection
from integration.reference.clusters.node_config import CLUSTER_ID
from integration.reference.clusters.ports import free_ports
from integration.reference.clusters.waiting import wait_until
from integration.reference.docker_daemon import connect_docker
from integration.reference.image import find_or_make_image
from integration.reference.jars import KAFKA_VERSION
from integration.reference.progress import silent

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.protocol.message import Message

__all__ = ["RealBroker"]

START_TIMEOUT_MS = 120_000
WAIT_MS = 30_000
PAUSE_MS = 5
_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="admin" password="admin" user_admin="admin";'
)


def _environment(client_port: int) -> dict[str, str]:
    properties = {
        **CONFIGS,
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "listeners": "CLIENT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093,ADMIN://0.0.0.0:9094",
        "advertised.listeners": f"CLIENT://127.0.0.1:{client_port},ADMIN://127.0.0.1:9094",
        "listener.security.protocol.map": (
            "CLIENT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,ADMIN:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "ADMIN",
        "controller.listener.names": "CONTROLLER",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.admin.plain.sasl.jaas.config": _LOGIN,
        "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
        "log.dirs": "/tmp/data",  # noqa: S108 - of the container
    }
    return {
        "CLUSTER_ID": CLUSTER_ID,
        **{f"KAFKA_{name.replace('.', '_').upper()}": value for name, value in properties.items()},
    }


class RealBroker:
    """A `TableBroker`; a context manager that leaves nothing behind."""

    principal = "User:ANONYMOUS"

    def __enter__(self) -> Self:
        self._cleanup = ExitStack()
        docker = self._cleanup.enter_context(closing(connect_docker()))
        client_port, admin_port = free_ports(2)
        container = docker.containers.run(
            find_or_make_image(KAFKA_VERSION, progress=silent),
            detach=True,
            environment=_environment(client_port),
            ports={"9092/tcp": ("127.0.0.1", client_port), "9094/tcp": ("127.0.0.1", admin_port)},
        )
        self._cleanup.callback(container.remove, force=True, v=True)
        try:
            wait_until(partial(_answers, client_port), "Kafka answers", timeout_ms=START_TIMEOUT_MS)
            self._client = self._cleanup.enter_context(RawConnection("127.0.0.1", client_port))
            self._admin = self._cleanup.enter_context(RawConnection("127.0.0.1", admin_port))
            self._log_in()
            container.reload()
            self.host = container.attrs["NetworkSettings"]["Networks"]["bridge"]["Gateway"]
        except BaseException:
            self._cleanup.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def ask(self, message: Message, version: int) -> Any:
        """Return the answer that the client gets."""
        return _ask(self._client, message, version)

    def ask_as_admin(self, message: Message, version: int) -> Any:
        """Return the answer that the super user gets."""
        return _ask(self._admin, message, version)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition()` holds."""
        wait_until(condition, "the table", timeout_ms=WAIT_MS, interval_ms=PAUSE_MS)

    def _log_in(self) -> None:
        _ask(self._admin, messages.SaslHandshakeRequest("PLAIN"), 1)
        answer = _ask(self._admin, messages.SaslAuthenticateRequest(b"\0admin\0admin"), 2)
        assert not answer.error_code, answer


def _answers(port: int) -> bool:
    """Whether the broker itself is there, not only Docker's end of its port."""
    try:
        with RawConnection("127.0.0.1", port) as connection:
            _ask(connection, messages.ApiVersionsRequest(), 0)
    except OSError:
        return False
    return True


def _ask(connection: RawConnection, message: Message, version: int) -> Any:
    assert message.API_KEY is not None
    return connection.request(message, version, response_class(ApiKey(message.API_KEY))).message
