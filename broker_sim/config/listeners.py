"""Listeners: their endpoints, configurations set for one listener, and checks of a running broker's changes.

    listeners=INSIDE://:9092                   endpoints; a listener's name is converted to upper case
    listener.name.inside.ssl.key.password      a configuration of one listener: its name in lower case
    listener.name.inside.plain.sasl.jaas.config   a configuration of one mechanism of a listener

Mirrors `Endpoint`, `ListenerName`, `SocketServerConfigs.listenerListToEndPoints`,
`ChannelBuilders.channelBuilderConfigs`, `DynamicListenerConfig`, `ConnectionQuotas.validateReconfiguration` and
`DynamicMetricsReporters`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LISTENERS: Final = "listeners"
ADVERTISED_LISTENERS: Final = "advertised.listeners"
CONTROLLER_LISTENERS: Final = "controller.listener.names"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
INTER_BROKER_LISTENER: Final = "inter.broker.listener.name"
PLAINTEXT: Final = "PLAINTEXT"
DEFAULT_LISTENER: Final = PLAINTEXT
SASL_PROTOCOLS: Final = ("SASL_PLAINTEXT", "SASL_SSL")
"""Security protocols with SASL logins."""
SSL_PROTOCOLS: Final = ("SSL", "SASL_SSL")
"""Security protocols with encryption."""
SECURITY_PROTOCOLS: Final = (PLAINTEXT, "SSL", *SASL_PROTOCOLS)
_ENDPOINT: Final = re.compile(r"(.*)://(?:\[([0-9a-zA-Z\-%._:]*)\]|([0-9a-zA-Z\-%._]*)):(-?[0-9]+)", re.ASCII)
_PORT: Final = re.compile(r":([0-9]+)\s*(?=,|$)", re.ASCII)
DYNAMIC_ERROR: Final = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic configuration"
)
"""Kafka's message for a change that a running broker refuses, around the reason."""
PREFIX: Final = "listener.name."
"""Prefix of configurations that are set for one listener."""
PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Configurations that may be changed at run time only for a single listener."""
CONNECTION_LIMITS: Final = frozenset({"max.connection.creation.rate", "max.connections"})
"""Configurations that may be set for a listener of all brokers, and changed at run time."""
JAAS_CONFIG: Final = "sasl.jaas.config"
SERVER_HANDLER: Final = "sasl.server.callback.handler.class"
_OAUTHBEARER: Final = "org.apache.kafka.common.security.oauthbearer"
SIGNED_TOKEN_HANDLERS: Final = (
    f"{_OAUTHBEARER}.OAuthBearerValidatorCallbackHandler",
    f"{_OAUTHBEARER}.secured.OAuthBearerValidatorCallbackHandler",
)
"""Kafka's handler for signed tokens, under its new and old name: the only accepted classes."""
OF_MECHANISMS: Final = frozenset(
    {JAAS_CONFIG, "connections.max.reauth.ms", "sasl.login.callback.handler.class", "sasl.login.class", SERVER_HANDLER}
)
"""Configurations that may be set for a single mechanism."""
METRIC_REPORTERS: Final = "metric.reporters"
OVERRIDES: Final = "max.connections.per.ip.overrides"
PER_IP: Final = "max.connections.per.ip"
_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"
"""Kafka's only own metrics reporter."""
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*", re.ASCII)
_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT_BITS: Final = 32


class Endpoint(NamedTuple):
    """A listener of a broker: its name, and the address that it is bound to or advertised at."""

    listener: str
    host: str
    """The host or address, without brackets; empty if the endpoint has none."""
    port: int
    """The port; 0 stands for any free port."""
    security_protocol: str = PLAINTEXT


def check_advertised_names(advertised: Sequence[str], names: Sequence[str]) -> None:
    """Raise ConfigError if an advertised listener does not exist."""
    if not set(advertised) <= set(names):
        raise ConfigError(
            f"requirement failed: {ADVERTISED_LISTENERS} listener names must be equal to or a subset"
            f" of the ones defined in {LISTENERS}. Found {','.join(advertised)}. The valid options"
            f" based on the current configuration are {','.join(names)}"
        )


def parse_protocol_map(text: str) -> dict[str, str]:
    """Return the security protocol of each listener name. Raises ConfigError."""
    protocols = {}
    for pair in _split_as_java(text):
        name, colon, protocol = pair.rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property '{PROTOCOL_MAP}': begin 0, end -1, length {len(pair)}"
            )
        if protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(f"Invalid security protocol `{protocol.strip()}` defined in {PROTOCOL_MAP}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def security_protocols(values: Mapping[str, str], defaults: str) -> dict[str, str]:
    """Return the security protocol of each listener name under these configurations. Raises ConfigError.

    Without a map it is `defaults`, and controllers' listeners are in plain text unless a listener has logins or TLS by
    its name. Mirrors `KafkaConfig.effectiveListenerSecurityProtocolMap`.
    """
    protocols = parse_protocol_map(values.get(PROTOCOL_MAP, defaults))
    if PROTOCOL_MAP in values:
        return protocols
    controllers = controller_names(values)
    secured = {*SASL_PROTOCOLS, *SSL_PROTOCOLS}
    if secured.isdisjoint({*controllers, *listener_names(values.get(LISTENERS, ""))}):
        protocols.update((name, PLAINTEXT) for name in controllers)
    return protocols


def controller_names(values: Mapping[str, str]) -> frozenset[str]:
    """Return the names of controllers' listeners, upper case."""
    return frozenset(filter(None, (name.strip().upper() for name in values.get(CONTROLLER_LISTENERS, "").split(","))))


def parse_endpoints(
    key: str, parts: Sequence[str], protocols: Mapping[str, str], *, default_host: str = ""
) -> list[Endpoint]:
    """Return the endpoints of `listeners` or `advertised.listeners`. Raises ConfigError."""
    try:
        endpoints = [_parse_endpoint(part, protocols) for part in parts]
        _check_distinct(endpoints, ", ".join(parts), has_own_ports=key == LISTENERS)
    except ConfigError as error:
        shown = ", ".join(parts)
        raise ConfigError(f"Error creating broker listeners from '[{shown}]': {error}") from error
    return [each._replace(host=each.host or default_host) for each in endpoints]


def _parse_endpoint(part: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _ENDPOINT.fullmatch(part)
    if match is None:
        raise ConfigError(f"Unable to parse {part} to a broker endpoint")
    name = match[1].upper()
    if name not in protocols:
        raise ConfigError(f"No security protocol defined for listener {name}")
    return Endpoint(name, match[2] or match[3] or "", int(match[4]), protocols[name])


def _check_distinct(endpoints: Sequence[Endpoint], shown: str, *, has_own_ports: bool) -> None:
    """Raise ConfigError for a duplicate name, or a duplicate port unless one is IPv4 and the other IPv6."""
    if len({each.listener for each in endpoints}) < len(endpoints):
        raise ConfigError(f"Each listener must have a different name, listeners: [{shown}]")
    by_port = defaultdict(list)
    for each in endpoints:
        if each.port and has_own_ports:
            by_port[each.port].append(each.host)
    for port, hosts in by_port.items():
        if len(hosts) > 1 and not all(hosts):
            raise ConfigError(f"Each listener must have a different port, listeners: [{shown}]")
        if len({":" in host for host in hosts}) < len(hosts):
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other"
                f" IPv6, listeners: [{shown}], port: {port}"
            )


def listener_names(text: str) -> list[str]:
    """Return the names in a list of listeners, upper case; parts without a name are left out, see `parse_endpoints`."""
    return [part.partition("://")[0].strip().upper() for part in text.split(",") if "://" in part]


def shift_ports(text: str, by: int) -> str:
    """Return a list of listeners with `by` added to each port; 0 stays 0."""
    return _PORT.sub(lambda port: f":{int(port[1]) + by if int(port[1]) else 0}", text)


def listener_values(values: Mapping[str, str], listener: str) -> dict[str, str]:
    """Return the configurations set for that listener, without their prefix."""
    prefix = f"{PREFIX}{listener.lower()}."
    return {name.removeprefix(prefix): text for name, text in values.items() if name.startswith(prefix)}


def without_listener(name: str) -> str:
    """Return a configuration's name without the prefix of its listener and mechanism, if it has one."""
    own = name.removeprefix(PREFIX).partition(".")[2]
    if not name.startswith(PREFIX) or not own:
        return name
    of_mechanism = own.partition(".")[2]
    return of_mechanism if of_mechanism in OF_MECHANISMS else own


def check_listeners(listeners: Sequence[str], protocols: Mapping[str, str], advertised: Sequence[str]) -> None:
    """Raise ConfigError if a broker cannot use these `listeners`.

    `protocols` are those of `security_protocols`; `advertised` are the names of the advertised listeners.
    """
    endpoints = parse_endpoints(LISTENERS, listeners, protocols)
    check_advertised_names(advertised, [endpoint.listener for endpoint in endpoints])


def parse_overrides(text: str) -> dict[str, int]:
    """Return the limits of a list of `host:limit`, by host, without resolving names. Raises ConfigError."""
    hosts = []
    numbers = []
    for pair in _split_as_java(text.strip()):
        host, colon, number = pair.rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property '{OVERRIDES}': begin 0, end -1, length {len(pair)}"
            )
        hosts.append(host.strip())
        numbers.append(number.strip())
    for number in numbers:
        limit = 1 << (_INT_BITS - 1)
        if not _INT.fullmatch(number) or not -limit <= int(number) < limit:
            raise ConfigError(f'For input string: "{number}"')
    wrong = [host for host in hosts if not _HOST.fullmatch(host)]
    if wrong:
        raise ConfigError(f"{OVERRIDES} contains invalid addresses : {','.join(wrong)}")
    return dict(zip(hosts, map(int, numbers), strict=True))


def check_connections_per_ip(limit: int, overrides: str) -> None:
    """Raise ConfigError if no address could connect, or if the overrides are malformed."""
    if not parse_overrides(overrides) and not limit:
        raise ConfigError(f"requirement failed: {PER_IP} can be set to zero only if {OVERRIDES} property is set.")


def check_connection_limits(changes: Mapping[str, str], listeners: Iterable[str]) -> None:
    """Raise ConfigError if `changes` set a limit of the broker or of one of its listeners to 0."""
    prefixes = ("", *(f"{PREFIX}{listener.lower()}." for listener in listeners))
    for name in ("max.connections", "max.connection.creation.rate"):
        if any(_is_zero(changes.get(prefix + name)) for prefix in prefixes):
            raise ConfigError(DYNAMIC_ERROR.format(f"Invalid {name} 0"))


def _is_zero(text: str | None) -> bool:
    return text is not None and int(text) == 0


def takes_client_metrics(configs: Mapping[str, str]) -> bool:
    """Whether a broker's configurations have a metrics reporter that is not Kafka's own.

    It takes the place of a client telemetry plugin.
    """
    names = (name.strip() for name in configs.get(METRIC_REPORTERS, "").split(","))
    return any(name and name != _REPORTER for name in names)


def check_metric_reporters(text: str) -> None:
    """Raise ConfigError unless all classes are Kafka's own: plugins cannot be loaded."""
    if all(part.strip() == _REPORTER for part in text.split(",")) or not text.strip():
        return
    raise ConfigError(
        DYNAMIC_ERROR.format(
            f"Validation of dynamic config update of Set({METRIC_REPORTERS}) failed with class class"
            " kafka.server.DynamicMetricsReporters"
        )
    )


def _split_as_java(text: str) -> list[str]:
    """Return the parts between commas without trailing empty ones, like Java."""
    parts = [part.strip() for part in text.split(",")] if text else []
    while parts and not parts[-1]:
        parts.pop()
    return parts
