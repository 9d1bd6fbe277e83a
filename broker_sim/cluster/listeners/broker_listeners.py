"""The listeners of a cluster's brokers and their logins, from its arguments and Kafka's configurations.

    security="sasl_plaintext"   every listener requires a login, by any mechanism with a password

Mirrors the checks of listeners in `KafkaConfig`, and `ListenerInfo`.

Deliberate differences: a missing host is that of the cluster, not every address of the machine. Every broker opens
its listeners that `controller.listener.names` lists: all of them lead to the one controller, and one whose port
another listener of the cluster has is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.config import (
    ADVERTISED_LISTENERS,
    CONTROLLER_LISTENERS,
    INTER_BROKER_LISTENER,
    LISTENERS,
    PLAINTEXT,
    PROTOCOL_MAP,
    SASL_PROTOCOLS,
    SECURITY_PROTOCOLS,
    SSL_PROTOCOLS,
    Endpoint,
    check_advertised_names,
    controller_names,
    listener_names,
    parse_endpoints,
    security_protocols,
)
from broker_sim.controller import ScramUpsertion
from broker_sim.errors import ConfigError
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.runtime.arguments import can_be_sent
from broker_sim.security import Certificates, TokenIssuer
from broker_sim.security.delegation_tokens import SALT_BYTES

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.config import BrokerConfig, GivenValue
    from broker_sim.metadata import ScramCredential, ScramMechanism
    from broker_sim.security.sasl_listener import SaslListener
    from broker_sim.security.ssl_listener import SslListener

EARLY_START: Final = "early.start.listeners"
INTER_BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
LAST_PORT: Final = 65_535
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - refused, not bound
LOCALHOST: Final = "localhost"


class BrokerListeners(NamedTuple):
    """The listeners of one broker; port 0 stands for a free port, chosen when it is bound."""

    bound: tuple[Endpoint, ...]
    """The bound endpoints."""
    advertised: tuple[Endpoint, ...]
    """The endpoints in responses to clients: a subset, with addresses that clients can reach."""
    inter_broker: str
    """The listener for connections between brokers."""
    controllers: tuple[Endpoint, ...] = ()
    """The endpoints at which clients reach the controller."""
    sasl: Mapping[str, SaslListener] = MappingProxyType({})
    """Login settings, by the names of the listeners with logins."""
    ssl: Mapping[str, SslListener] = MappingProxyType({})
    """TLS settings, by the names of the listeners with TLS."""

    def is_of_controllers(self, endpoint: Endpoint) -> bool:
        """Whether the controller answers at the endpoint, not the broker."""
        return any(each.listener == endpoint.listener for each in self.controllers)


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
    verifies_claims: bool = False,
) -> BrokerListeners:
    """Return a broker's listeners. Raises ConfigError, worded as Kafka's.

    Unless `listeners` is set, there is one at `host` and `port` with `protocol`. `advertised_host` replaces all hosts
    unless `advertised.listeners` is set. `users` are passwords by name, in place of those in the configuration.
    `certificates` makes missing certificates, `issuer` signs tokens if no configuration names keys; with
    `verifies_claims`, as since Kafka 4.4, keys need an audience and an issuer.
    """
    protocols = security_protocols(config.originals, config.listener_security_protocol_map)
    if LISTENERS in config.originals:
        bound = parse_endpoints(LISTENERS, config.listeners, protocols, default_host=host)
    else:
        bound = parse_endpoints(LISTENERS, [f"{protocol}://:{port}"], protocols, default_host=host)
    advertised_listeners = config.advertised_listeners
    if advertised_listeners is None:
        advertised = [each._replace(host=advertised_host or each.host) for each in bound]
    else:
        advertised = parse_endpoints(
            ADVERTISED_LISTENERS, advertised_listeners, protocols, default_host=advertised_host or host
        )
    all_names = [each.listener for each in bound]
    controllers = controller_names(config.others)
    _check_early_start(config, {*all_names, *controllers})
    reachable = {each.listener: each for each in (*bound, *advertised) if each.host != ANY_ADDRESS}
    of_controllers = tuple(
        reachable.get(each.listener, each._replace(host=advertised_host or LOCALHOST))
        for each in bound
        if each.listener in controllers
    )
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
        config.for_listener(each.listener)  # raises ConfigError for invalid values
    make_sasl = partial(_sasl_listener, config, users, issuer, verifies_claims=verifies_claims)
    login_names = [each.listener for each in bound if each.security_protocol in SASL_PROTOCOLS]
    mechanism = config.others.get(INTER_BROKER_MECHANISM)
    # Brokers have no connections here, so a mechanism between them need not be configured.
    if inter_broker in login_names and mechanism is not None and mechanism not in config.sasl_enabled_mechanisms:
        raise ConfigError(
            f"requirement failed: {INTER_BROKER_MECHANISM} must be included in {MECHANISMS} when SASL is used for"
            " inter-broker communication"
        )
    sasl = {name: make_sasl(name) for name in login_names}
    encrypted = [each.listener for each in bound if each.security_protocol in SSL_PROTOCOLS]
    hosts = {each.host for each in (*bound, *advertised)}
    make_ssl = partial(_ssl_listener, config, certificates or Certificates(), hosts)
    ssl = {name: make_ssl(name, has_logins=name in sasl, is_inter_broker=name == inter_broker) for name in encrypted}
    return BrokerListeners(tuple(bound), tuple(advertised), inter_broker, of_controllers, sasl, ssl)


def _sasl_listener(
    config: BrokerConfig,
    users: Mapping[str, str] | None,
    issuer: TokenIssuer | None,
    name: str,
    *,
    verifies_claims: bool,
) -> SaslListener:
    from broker_sim.security.sasl_listener import sasl_listener  # noqa: PLC0415 - only for logins

    return sasl_listener(config, name, users, issuer, verifies_claims=verifies_claims)


def _ssl_listener(
    config: BrokerConfig, certificates: Certificates, hosts: Iterable[str], name: str, **facts: bool
) -> SslListener:
    from broker_sim.security.ssl_listener import SslListener  # noqa: PLC0415 - it imports ssl, which is slow

    return SslListener(config, name, certificates, hosts, **facts)


def _check_early_start(config: BrokerConfig, names: Collection[str]) -> None:
    """Raise ConfigError for a name in `early.start.listeners` that is no listener's."""
    for name in config.others.get(EARLY_START, "").split(","):
        if name.strip() and name.strip() not in names:
            raise ConfigError(
                f"{EARLY_START} contains listener {name.strip()}, but this is not contained in {LISTENERS} or"
                f" {CONTROLLER_LISTENERS}"
            )


def _inter_broker_listener(config: BrokerConfig, protocols: Mapping[str, str]) -> str:
    protocol = config.others.get(INTER_BROKER_PROTOCOL)
    name = config.inter_broker_listener_name
    if name == "":
        raise ConfigError("The provided listener name is null or empty string")
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
    """Return the configurations with these listeners.

    Unless a protocol map is configured, a listener with the name of a protocol, such as SASL_SSL, has that protocol
    as in Kafka, and all others have `protocol`.
    The first advertised listener is the one between brokers unless another is configured. Raises ConfigError.
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
            raise ConfigError(f"{name} is set twice: as {argument} and in configs")
        texts[name] = value
    if LISTENERS in texts:
        names = listener_names(str(texts[LISTENERS]))
        advertised_text = {**(configs or {}), **texts}.get(ADVERTISED_LISTENERS)
        advertised_names = names if advertised_text is None else listener_names(str(advertised_text))
        every_name = dict.fromkeys([*names, *advertised_names])
        texts[PROTOCOL_MAP] = ",".join(
            f"{name}:{name if name in SECURITY_PROTOCOLS else protocol}" for name in every_name
        )
        texts.update((INTER_BROKER_LISTENER, name) for name in advertised_names[:1])
    return {**texts, **(configs or {})} if texts else configs


def listeners_by_id(
    configs: Mapping[int, BrokerConfig], ports: Sequence[int] | None, make: Callable[..., BrokerListeners]
) -> dict[int, BrokerListeners]:
    """Return the listeners of each broker, made by `make(config, port=0)`. Raises ConfigError."""
    if ports is not None and any(LISTENERS in config.originals for config in configs.values()):
        raise ConfigError(f"{LISTENERS} contains the ports; leave out ports and --port")
    own_ports = ports or [0] * len(configs)
    listeners = {
        broker_id: make(config, port=port) for (broker_id, config), port in zip(configs.items(), own_ports, strict=True)
    }
    return _without_used_ports(listeners)


def _without_used_ports(listeners: Mapping[int, BrokerListeners]) -> dict[int, BrokerListeners]:
    """Leave out controllers' listeners whose port another listener has; brokers' listeners have precedence."""
    used_ports = {
        endpoint.port
        for each in listeners.values()
        for endpoint in each.bound
        if endpoint.port and not each.is_of_controllers(endpoint)
    }
    free: dict[int, BrokerListeners] = {}
    for broker_id, each in listeners.items():
        own = [endpoint for endpoint in each.bound if each.is_of_controllers(endpoint)]
        closed = {endpoint.listener for endpoint in own if endpoint.port in used_ports}
        used_ports.update(endpoint.port for endpoint in own if endpoint.port)
        free[broker_id] = each._replace(
            bound=tuple(endpoint for endpoint in each.bound if endpoint.listener not in closed),
            controllers=tuple(endpoint for endpoint in each.controllers if endpoint.listener not in closed),
        )
    return free


PROTOCOLS: Final = {protocol.lower(): protocol for protocol in SECURITY_PROTOCOLS}
MECHANISMS: Final = "sasl.enabled.mechanisms"


class Security(NamedTuple):
    """Protocol and users of a cluster; the repr has no passwords."""

    protocol: str
    """The protocol of listeners whose configuration names no other."""
    users: Mapping[str, str] | None
    """Passwords by name; None if the configurations have them, or without logins."""

    def __repr__(self) -> str:
        return f"Security({self.protocol}, users={list(self.users or ())})"

    def with_configs(self, configs: Mapping[str, GivenValue] | None) -> Mapping[str, GivenValue] | None:
        """Return the configurations, completed by those that the protocol implies."""
        explicit = configs or {}
        implied: dict[str, GivenValue] = {}
        if self.protocol in SASL_PROTOCOLS or self.users is not None:
            from broker_sim.security.sasl_listener import PASSWORD_MECHANISMS  # noqa: PLC0415 - only for logins

            implied[MECHANISMS] = ",".join(PASSWORD_MECHANISMS)
        if self.protocol != PLAINTEXT and LISTENERS not in explicit:
            implied[INTER_BROKER_LISTENER] = self.protocol
        return {**implied, **explicit} if implied else configs


def read_security(security: object, users: object) -> Security:
    """Return the checked arguments. Raises ConfigError; its message contains no password."""
    if security is not None and security not in PROTOCOLS:
        raise ConfigError(f"security must be one of {', '.join(PROTOCOLS)}, not {security!r}")
    if users is None:
        checked = None
    elif isinstance(users, Mapping):
        for user, password in users.items():
            check_user(user, password)
        checked = dict(users)
    else:
        raise ConfigError("users must be a mapping such as {'billing': 'secret'}")
    return Security(PROTOCOLS[str(security or "plaintext")], checked)


def check_user(user: object, password: object) -> None:
    """Raise ConfigError if the name or password is invalid; the message never contains the password."""
    if not isinstance(user, str) or not user or "\0" in user or not can_be_sent(user):
        raise ConfigError(f"users: a name must be a non-empty text, not {user!r}")
    if not isinstance(password, str) or not password or "\0" in password or not can_be_sent(password):
        raise ConfigError(f"users: the password of {user!r} must be a non-empty text")


def credentials_of(
    security: Security, listeners: Iterable[BrokerListeners], rng: random.Random
) -> list[list[ScramUpsertion]]:
    """Return the SCRAM credentials of the users, one list for each enabled mechanism."""
    enabled = {name for each in listeners for sasl in each.sasl.values() for name in sasl.mechanisms}
    by_mechanism = []
    users = security.users or {}
    for mechanism in SCRAM_MECHANISMS.values():
        if users and mechanism.name in enabled:
            credentials = [_credential(mechanism, user, users[user], rng) for user in users]
            by_mechanism.append(credentials)
    return by_mechanism


def with_password(user: str, credentials: Mapping[int, ScramCredential], password: str) -> list[ScramUpsertion]:
    """Return SCRAM credentials for a new password, one for each old credential (by mechanism code)."""
    upsertions = []
    for code, each in credentials.items():
        salted = SCRAM_MECHANISMS[code].salted_password(password, each.salt, each.iterations)
        upsertions.append(ScramUpsertion(user, code, each.iterations, each.salt, salted))
    return upsertions


def _credential(mechanism: ScramMechanism, user: str, password: str, rng: random.Random) -> ScramUpsertion:
    salt, iterations = rng.randbytes(SALT_BYTES), mechanism.min_iterations
    salted = mechanism.salted_password(password, salt, iterations)
    return ScramUpsertion(user, mechanism.code, iterations, salt, salted)


def check_users(security: Security, listeners: Iterable[BrokerListeners]) -> None:
    """Raise ConfigError if there are users but no listener with logins."""
    if security.users is not None and not any(each.sasl for each in listeners):
        raise ConfigError(
            "users need a listener with logins; pass security='sasl_plaintext' or 'sasl_ssl', or name a listener"
            " SASL_PLAINTEXT or SASL_SSL"
        )
