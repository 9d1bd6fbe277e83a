"""Frozen snapshots of the connections of clients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from broker_sim.handlers.telemetry.client_metrics import ClientMetricsStatus

if TYPE_CHECKING:
    from broker_sim.cluster.listeners.listeners import Listeners


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One connection of a client. Most clients have one to each broker, and consumers one more."""

    client_id: str | None
    """The client id in its last request, None before the first request."""
    address: str
    """`host:port` of the client's end."""
    broker: int
    listener: str
    """The name of the broker's listener."""
    api: str | None
    """The API of its last request, such as `Fetch`; None before the first request."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class ClientsStatus(tuple[ClientStatus, ...]):
    """The connections of all clients, by broker and in the order in which they were made."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"clients": [client.to_json() for client in self]}


class ClientsMetrics(tuple[ClientMetricsStatus, ...]):
    """The last metrics that clients have pushed."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"clients": [client.to_json() for client in self]}


def clients_status(listeners: Listeners) -> ClientsStatus:
    """Return the connections of clients to running and paused brokers."""
    statuses = []
    for broker_id, connection in listeners.connections():
        header = connection.last_request
        client_id, api = (None, None) if header is None else (header.client_id, header.api_key.api_name)
        statuses.append(ClientStatus(client_id, connection.peer, broker_id, connection.listener, api))
    return ClientsStatus(statuses)
