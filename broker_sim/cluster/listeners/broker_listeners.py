"""The listeners of a cluster's brokers, as its arguments and Kafka's configurations say.

Mirrors the checks of listeners in `KafkaConfig`, and `ListenerInfo`.

Deliberate differences: a host that is left out is that of the cluster, not every address of the
machine. Listeners of `controller.listener.names` are left out, because no controller has a socket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker_sim.config import (
    ADVERTISED_LISTENERS,
    INTER_BROKER_LISTENER,
    LISTENERS,
    PLAINTEXT,
    PROTOCOL_MAP,
    SASL_PROTOCOLS,
    SSL_PROTOCOLS,
    Endpoint,
    check_advertised_names,
    listener_names,
    parse_endpoints,
    parse_protocol_map,
)
from broker_sim.errors import ConfigError
from broker_sim.security import Certificates, SaslListener, SslListener, TokenIssuer, sasl_listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim.config import BrokerConfig, GivenValue

INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
CONTROLLER_LISTENERS: Final = "controller.listener.names"
LAST_PORT: Final = 65_535
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - refused, not bound


@dataclass(frozen=True, slots=True)
class BrokerListeners:
    """The listeners of one broker; a port of 0 is known only when it is bound."""

    bound: tuple[Endpoint, ...]
    """Where it listens."""
    advertised: tuple[Endpoint, ...]
    """What clients are told of: some of these, under addresses by which they can reach them."""
    inter_broker: str
    """The listener that brokers would use among each other."""
    sasl: Mapping[str, SaslListener] = field(default_factory=dict)
    """How clients log in, by the names of the listeners where they do."""
    ssl: Mapping[str, SslListener] = field(default_factory=dict)
    """The TLS of those listeners that have it."""


def broker_listeners(
    config: BrokerConfig,
    *,
    host: str,
    port: int = 0,
    advertised_host: str = "",
    protocol: str = PLAINTEXT,
    users: Mapping[str, str] | None = None,
    certificates: Certificates | None = None,
    issuer: TokenIssuer | None = None,
) -> BrokerListeners:
    """Return a broker's listeners. Raises ConfigError, worded as Kafka's.

    Unless `listeners` is set, there is one at `host` and `port`, of that protocol. `advertised_host` takes
    the place of all hosts where `advertised.listeners` is not set. `users` are the passwords of users by
    name, in place of those in the configuration. `certificates` makes those that no configuration has,
    `issuer` signs tokens where no configuration names keys.
    """
    protocols = parse_protocol_map(config.listener_security_protocol_map)
    if LISTENERS in config.originals:
        bound = parse_endpoints(LISTENERS, config.listeners, protocols, default_host=host)
    else:
        bound = [Endpoint(protocol, host, port, protocol)]
    given = config.advertised_listeners
    if given is None:
        advertised = [each._replace(host=advertised_host or each.host) for each in bound]
    else:
        advertised = parse_endpoints(ADVERTISED_LISTENERS, given, protocols, default_host=advertised_host or host)
    all_names = [each.listener for each in bound]
    controllers = _controller_listeners(config)
    bound = [each for each in bound if each.listener not in controllers]
    advertised = [each for each in advertised if each.listener not in controllers]
    if not advertised:
        raise ConfigError(
            "requirement failed: There must be at least one broker advertised listener. Perhaps all"
            f" listeners appear in {CONTROLLER_LISTENERS}?"
        )
    inter_broker = _inter_broker_listener(config, protocols)
    names = [each.listener for each in advertised]
    if inter_broker not in names:
        raise ConfigError(
            f"requirement failed: {INTER_BROKER_LISTENER} must be a listener name defined in"
            f" {ADVERTISED_LISTENERS}. The valid options based on currently configured listeners are"
            f" {','.join(names)}"
        )
    check_advertised_names(names, all_names)
    if any(each.host == ANY_ADDRESS for each in advertised):
        raise ConfigError(
            f"requirement failed: {ADVERTISED_LISTENERS} cannot use the nonroutable meta-address"
            f" {ANY_ADDRESS}. Use a routable IP address."
        )
    _check_ports(LISTENERS, bound)
    _check_ports(ADVERTISED_LISTENERS, advertised)
    for each in bound:
        config.for_listener(each.listener)  # raises for what cannot be set
    sasl = {
        each.listener: sasl_listener(config, each.listener, users, issuer)
        for each in bound
        if each.security_protocol in SASL_PROTOCOLS
    }
    made = certificates or Certificates()
    hosts = {each.host for each in (*bound, *advertised)}
    ssl = {
        each.listener: SslListener(
            config,
            each.listener,
            made,
            hosts,
            has_logins=each.listener in sasl,
            is_inter_broker=each.listener == inter_broker,
        )
        for each in bound
        if each.security_protocol in SSL_PROTOCOLS
    }
    return BrokerListeners(tuple(bound), tuple(advertised), inter_broker, sasl, ssl)


def _controller_listeners(config: BrokerConfig) -> frozenset[str]:
    names = config.others.get(CONTROLLER_LISTENERS, "").split(",")
    return frozenset(name.strip().upper() for name in names)


def _inter_broker_listener(config: BrokerConfig, protocols: Mapping[str, str]) -> str:
    protocol = config.others.get(INTER_BROKER_PROTOCOL)
    name = config.inter_broker_listener_name
    if name is None:
        return PLAINTEXT if protocol is None else protocol.strip().upper()
    if protocol is not None:
        raise ConfigError(f"Only one of {INTER_BROKER_LISTENER} and {INTER_BROKER_PROTOCOL} should be set.")
    if name.upper() not in protocols:
        raise ConfigError(
            f"Listener with name {name.upper()} defined in {INTER_BROKER_LISTENER} not found in {PROTOCOL_MAP}."
        )
    return name.upper()


def _check_ports(key: str, endpoints: Iterable[Endpoint]) -> None:
    for each in endpoints:
        if not 0 <= each.port <= LAST_PORT:
            raise ConfigError(
                f"{key} has port {each.port} for {each.listener}; a port is a number from 0 (any free"
                f" one) to {LAST_PORT}"
            )


def with_listeners(
    configs: Mapping[str, GivenValue] | None, listeners: object, advertised: object, protocol: str = PLAINTEXT
) -> Mapping[str, GivenValue] | None:
    """Return the configurations with listeners, all of that protocol unless a map says otherwise.

    The first one that clients are told of is that between brokers, unless it is set. Raises ConfigError.
    """
    texts: dict[str, GivenValue] = {}
    for name, value in ((LISTENERS, listeners), (ADVERTISED_LISTENERS, advertised)):
        if value is None:
            continue
        argument = name.replace(".", "_")
        if not isinstance(value, str):
            raise ConfigError(
                f"{argument} must be a text such as 'INSIDE://127.0.0.1:19092,OUTSIDE://127.0.0.1:9092', not {value!r}"
            )
        if name in (configs or {}):
            raise ConfigError(f"{name} is given twice: as {argument} and in configs")
        texts[name] = value
    if LISTENERS in texts:
        names = listener_names(str(texts[LISTENERS]))
        told = {**(configs or {}), **texts}.get(ADVERTISED_LISTENERS)
        told_names = names if told is None else listener_names(str(told))
        every_name = dict.fromkeys([*names, *told_names])
        texts[PROTOCOL_MAP] = ",".join(f"{name}:{protocol}" for name in every_name)
        texts.update((INTER_BROKER_LISTENER, name) for name in told_names[:1])
    return {**texts, **(configs or {})} if texts else configs


def listeners_by_id(
    configs: Mapping[int, BrokerConfig],
    host: str,
    advertised_host: str,
    ports: Sequence[int] | None,
    protocol: str = PLAINTEXT,
    users: Mapping[str, str] | None = None,
    certificates: Certificates | None = None,
    issuer: TokenIssuer | None = None,
) -> dict[int, BrokerListeners]:
    """Return the listeners of each broker. Raises ConfigError."""
    if ports is not None and any(LISTENERS in config.originals for config in configs.values()):
        raise ConfigError(f"{LISTENERS} have ports of their own; leave out ports and --port")
    own_ports = ports or [0] * len(configs)
    return {
        broker_id: broker_listeners(
            config,
            host=host,
            port=port,
            advertised_host=advertised_host,
            protocol=protocol,
            users=users,
            certificates=certificates,
            issuer=issuer,
        )
        for (broker_id, config), port in zip(configs.items(), own_ports, strict=True)
    }
