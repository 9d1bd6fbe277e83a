"""The table's broker as a simulated one, in virtual time: a row takes a fraction of a millisecond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.security import KafkaPrincipal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.network import SendResponse
    from broker_sim.protocol.message import Chunk, Message

WAIT_MS = 20_000
STEP_MS = 10
CONFIGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "table",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Playing the table takes longer than the default sessions of its members.
    "group.share.session.timeout.ms": "3600000",
    "group.share.max.session.timeout.ms": "3600000",
    "group.streams.session.timeout.ms": "3600000",
    "group.streams.max.session.timeout.ms": "3600000",
}


class _Connection:
    """A connection of a client that has logged in."""

    ip = peer = "127.0.0.1"
    port = 40_000
    listener = "PLAINTEXT"
    may_ask_for_tokens = True
    sends_files = False
    last_request: RequestHeader | None = None
    software = ("unknown", "unknown")

    def __init__(self, principal: str) -> None:
        self.principal = KafkaPrincipal.parse(principal)

    def start_throttling(self) -> None:
        raise AssertionError("nobody has a quota")

    end_throttling = start_throttling

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Do nothing: the connection stays open."""

    def close(self, reason: str = "") -> None:
        raise AssertionError(f"closed: {reason}")


class SimulatedBroker:
    """A `TableBroker`; a context manager."""

    def __init__(self, principal: str = "User:alice") -> None:
        self.principal = principal
        self.host = _Connection.ip
        self.cluster = VirtualCluster(1, configs=CONFIGS)
        self._client = _Connection(principal)
        self._admin = _Connection("User:admin")

    def ask(self, message: Message, version: int) -> Any:
        """Return the client's response."""
        return self._ask(self._client, message, version)

    def ask_as_admin(self, message: Message, version: int) -> Any:
        """Return the super user's response."""
        return self._ask(self._admin, message, version)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Advance virtual time until `condition()`, which sends requests itself, is true."""
        end_ms = self.cluster.now_ms + WAIT_MS
        while not condition():
            assert self.cluster.now_ms < end_ms, "not reached"
            self.cluster.advance(STEP_MS)

    def _ask(self, connection: _Connection, message: Message, version: int) -> Any:
        assert message.API_KEY is not None
        header = RequestHeader(ApiKey(message.API_KEY), version, 7, "table")
        frame = b"".join(encode_request(header, message))[4:]
        answers: list[bytes] = []

        def send_response(chunks: Sequence[Chunk] | None) -> None:
            assert chunks is not None
            answers.append(b"".join(chunks))  # type: ignore[arg-type]  # this connection takes no files

        send: SendResponse = send_response
        self.cluster.nodes.brokers[1].dispatcher.handle_frame(memoryview(frame), connection, send)
        self.cluster.run_until(lambda: bool(answers))
        _, answer = decode_response(header.api_key, version, memoryview(answers[0])[4:])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()
