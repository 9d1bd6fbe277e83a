"""The brokers' listening sockets: bound at the start, opened when a broker is unfenced.

Until then connections are refused, as in Kafka, where `BrokerServer.startup` starts the acceptors last.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ConfigError
from broker_sim.handlers.error_answers import whole_answer
from broker_sim.network import ListenerLogin, ListenerSecurity, SocketServer
from broker_sim.security import DelegationTokenCache

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.listeners.broker_listeners import BrokerListeners
    from broker_sim.config import Endpoint
    from broker_sim.metadata import ScramCredential
    from broker_sim.network import Connection, RequestSink
    from broker_sim.security import KafkaPrincipal
    from broker_sim.security.sasl_listener import SaslListener
    from broker_sim.security.ssl_listener import SslListener


class Listeners:
    """One `SocketServer` for each live broker. Thread rule: the event loop.

    `listeners` are the endpoints by broker; port 0 is any free port, which the broker keeps when it is restarted.
    `on_accepting` is called when a broker accepts clients.
    """

    def __init__(self, listeners: Mapping[int, BrokerListeners], on_accepting: Callable[[], object]) -> None:
        self._arguments = dict(listeners)
        """The configured listeners: a port of 0 may change, others are fixed."""
        self._listeners = dict(listeners)
        self._on_accepting = on_accepting
        self._servers: dict[int, SocketServer] = {}
        self._starting: dict[int, Broker] = {}
        self._openings: dict[int, asyncio.Task[None]] = {}

    def add(self, broker_id: int, listeners: BrokerListeners) -> None:
        """Add a broker; it takes over passwords that were changed at other brokers."""
        for name, sasl in listeners.sasl.items():
            for other in self._listeners.values():
                if name in other.sasl:
                    passwords = other.sasl[name].users.passwords
                    sasl.users.passwords = {
                        user: passwords.get(user, own) for user, own in sasl.users.passwords.items()
                    }
        self._arguments[broker_id] = self._listeners[broker_id] = listeners

    def remove(self, broker_id: int) -> None:
        """Remove a broker whose ports are closed."""
        del self._arguments[broker_id], self._listeners[broker_id]

    def bind(self, broker_id: int, *, new_ports: bool = False) -> None:
        """Bind the broker's ports; with `new_ports` free ports other than the former ones.

        Raises OSError with advice if one is in use, ConfigError for new ports where they are fixed.
        """
        listeners = self._listeners[broker_id]
        if new_ports:
            _check_free_ports([self._arguments[broker_id]])
            with suppress(OSError):  # as long as the former ports are in use, the new ones differ
                self._servers[broker_id] = SocketServer(listeners.bound)
            listeners = self._arguments[broker_id]
        server = SocketServer(listeners.bound)
        if broker_id in self._servers:
            self._servers[broker_id].close()
        self._servers[broker_id] = server
        self._follow_ports(broker_id)

    def _follow_ports(self, broker_id: int) -> None:
        server, listeners = self._servers[broker_id], self._arguments[broker_id]
        ports = {each.listener: each.port for each in server.endpoints}
        self._listeners[broker_id] = listeners._replace(
            bound=tuple(server.endpoints),
            advertised=tuple(each._replace(port=each.port or ports[each.listener]) for each in listeners.advertised),
            controllers=tuple(each._replace(port=each.port or ports[each.listener]) for each in listeners.controllers),
        )

    def check_new_ports(self, lasting: str | None) -> None:
        """Raise ConfigError if a listener other than `lasting` has a fixed port, or if no broker has `lasting`."""
        if lasting is not None and lasting.upper() not in self.names:
            raise ConfigError(f"unknown listener {lasting!r}; listeners: {', '.join(self.names)}")
        _check_free_ports(self._arguments.values(), lasting)

    async def move(self, broker_id: int, lasting: str | None) -> tuple[Endpoint, ...]:
        """Give all listeners of the broker but `lasting` new free ports; return its advertised endpoints.

        The connections of their clients are aborted, and the former ports refuse clients. Raises OSError with advice.
        """
        server = self._servers[broker_id]
        await server.move([each.listener for each in server.endpoints if not _is_named(each, lasting)])
        self._follow_ports(broker_id)
        return self.advertised(broker_id)

    def connections(self) -> Iterator[tuple[int, Connection]]:
        """Yield each connection of a client with its broker's id."""
        for broker_id, server in sorted(self._servers.items()):
            for connection in server.connections:
                yield broker_id, connection

    def advertised(self, broker_id: int) -> tuple[Endpoint, ...]:
        """Return the broker's advertised endpoints, once its ports are bound."""
        return self._listeners[broker_id].advertised

    @property
    def all(self) -> Collection[BrokerListeners]:
        """The listeners of all brokers."""
        return self._listeners.values()

    @property
    def names(self) -> list[str]:
        """The names of the advertised listeners of all brokers, then of those that lead to the controller."""
        return list(dict.fromkeys(endpoint.listener for _, endpoint in self._all_reachable()))

    def addresses_of(self, name: str) -> dict[int, tuple[str, int]]:
        """Return host and port of that listener by broker. Raises ConfigError if no broker has it."""
        addresses = {
            broker_id: (endpoint.host, endpoint.port)
            for broker_id, endpoint in self._all_reachable()
            if endpoint.listener == name.upper()
        }
        if not addresses:
            raise ConfigError(f"unknown listener {name!r}; listeners: {', '.join(self.names)}")
        return addresses

    def find(self, name: str) -> tuple[str, SaslListener | None, SslListener | None]:
        """Return protocol, logins and TLS of an existing listener."""
        for listeners in self._listeners.values():
            for endpoint in listeners.bound:
                if endpoint.listener == name.upper():
                    sasl, ssl = listeners.sasl, listeners.ssl
                    own = endpoint.listener
                    return endpoint.security_protocol, sasl.get(own), ssl.get(own)
        raise KeyError(name)

    def _all_reachable(self) -> Iterator[tuple[int, Endpoint]]:
        for broker_id, listeners in self._listeners.items():
            for endpoint in listeners.advertised:
                yield broker_id, endpoint
        for broker_id, listeners in self._listeners.items():
            for endpoint in listeners.controllers:
                yield broker_id, endpoint

    def serve(self, broker: Broker) -> None:
        """Accept the broker's clients as soon as it is unfenced; returns at once."""
        self._starting[broker.broker_id] = broker
        for ssl in self._listeners[broker.broker_id].ssl.values():
            broker.dynamic_config.add(ssl)

    def open_serving(self) -> None:
        """Open the sockets of the brokers that accept connections now."""
        serving = [each for each in self._starting.values() if each.is_serving]
        for broker in serving:
            broker_id = broker.broker_id
            del self._starting[broker_id]
            self._openings[broker_id] = asyncio.get_running_loop().create_task(self._open(broker))

    async def _open(self, broker: Broker) -> None:
        try:
            await self._open_sockets(broker)
        finally:  # also after an error, which `is_accepting` raises in the waiting caller
            self._on_accepting()

    async def _open_sockets(self, broker: Broker) -> None:
        server = self._servers[broker.broker_id]
        listeners = self._listeners[broker.broker_id]
        # In virtual time, URLs of keys are read when the cluster is created, not here.
        if not hasattr(asyncio.get_running_loop(), "clock"):
            for sasl in listeners.sasl.values():
                sasl.start(broker.process)
        security = {
            name: ListenerSecurity(
                _login(listeners.sasl[name], broker) if name in listeners.sasl else None, listeners.ssl.get(name)
            )
            for name in {**listeners.sasl, **listeners.ssl}
        }
        names = [each.listener for each in listeners.bound]
        broker.connection_quotas.listen(names, listeners.inter_broker)
        sinks: dict[str, RequestSink] = {}
        if listeners.controllers:
            gate = broker.controller_gate(listeners.controllers)
            sinks = {each.listener: gate for each in listeners.controllers}
        await server.start(
            broker.process,
            broker.dispatcher,
            broker.config,
            broker.logs.memory,
            security,
            broker.connection_quotas,
            sinks,
        )

    def is_accepting(self, broker_id: int) -> bool:
        """Whether clients can connect. Raises the error if opening the socket failed."""
        opening = self._openings.get(broker_id)
        if opening is None or not opening.done():
            return False
        opening.result()
        return True

    def hold_clients(self, broker_id: int, listener: str | None = None) -> bool:
        """Hold all bytes between the broker and its clients, of one listener or of all, until `release_clients`.

        Return whether any clients are held. Raises ConfigError for an unknown listener.
        """
        server = self._servers[broker_id]
        for name in self._names_of(broker_id, listener):
            server.hold_clients(name)
        return server.holds_clients

    def release_clients(self, broker_id: int, listener: str | None = None) -> bool:
        """Deliver the held bytes; return whether any are still held. Raises ConfigError."""
        server = self._servers[broker_id]
        for name in self._names_of(broker_id, listener):
            server.release_clients(name)
        return server.holds_clients

    def _names_of(self, broker_id: int, listener: str | None) -> list[str]:
        names = [each.listener for each in self._listeners[broker_id].bound]
        if listener is None:
            return names
        if listener.upper() not in names:
            raise ConfigError(f"unknown listener {listener!r}; listeners: {', '.join(names)}")
        return [listener.upper()]

    def end_connections_of(self, principal: KafkaPrincipal) -> None:
        """Abort the connections of this principal, at all brokers."""
        for server in self._servers.values():
            server.end_connections_of(principal)

    def close(self, broker_id: int) -> None:
        """Stop listening and close all connections of the broker."""
        opening = self._openings.pop(broker_id, None)
        if opening is not None:
            opening.cancel()
        self._starting.pop(broker_id, None)
        server = self._servers.pop(broker_id, None)
        if server is not None:
            server.close()

    def close_all(self) -> None:
        """Close the ports of all brokers."""
        for broker_id in list(self._servers):
            self.close(broker_id)


def _check_free_ports(arguments: Iterable[BrokerListeners], lasting: str | None = None) -> None:
    """Raise ConfigError if a listener other than `lasting` has a fixed port."""
    for listeners in arguments:
        for endpoint in (*listeners.bound, *listeners.advertised):
            if endpoint.port and not _is_named(endpoint, lasting):
                raise ConfigError(
                    f"listener {endpoint.listener} has the fixed port {endpoint.port}, which former clients know;"
                    " open the cluster with free ports (0), or leave out new_ports"
                )


def _is_named(endpoint: Endpoint, listener: str | None) -> bool:
    return listener is not None and endpoint.listener == listener.upper()


def _login(sasl: SaslListener, broker: Broker) -> ListenerLogin:
    def credential_of(user: str, mechanism: int) -> ScramCredential | None:
        return broker.image.scram.get(user, {}).get(mechanism)

    return ListenerLogin(
        partial(
            sasl.make_authenticator,
            credential_of,
            DelegationTokenCache(
                broker.config.delegation_token_secret_key, lambda: broker.image, broker.random
            ).credential_of,
            broker.random,
            whole_answer,
            broker.clock.wall_clock_ms,
            limited=broker.release.is_at_least("4.4"),
        ),
        sasl.max_receive_bytes,
        sasl.failure_delay_ms,
    )
