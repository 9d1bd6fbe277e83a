"""Where a broker listens, and where clients find it: endpoints, read from Kafka's lists of them.

Mirrors `Endpoint`, `ListenerName` and `SocketServerConfigs.listenerListToEndPoints`. The name of a listener
is upper case, whatever it was written as.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LISTENERS: Final = "listeners"
ADVERTISED_LISTENERS: Final = "advertised.listeners"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
INTER_BROKER_LISTENER: Final = "inter.broker.listener.name"
PLAINTEXT: Final = "PLAINTEXT"
DEFAULT_LISTENER: Final = PLAINTEXT
SASL_PROTOCOLS: Final = ("SASL_PLAINTEXT", "SASL_SSL")
"""Those whose clients log in."""
SSL_PROTOCOLS: Final = ("SSL", "SASL_SSL")
"""Those that encrypt."""
SECURITY_PROTOCOLS: Final = (PLAINTEXT, "SSL", *SASL_PROTOCOLS)
_ENDPOINT: Final = re.compile(r"(.*)://(?:\[([0-9a-zA-Z\-%._:]*)\]|([0-9a-zA-Z\-%._]*)):(-?[0-9]+)", re.ASCII)
_PORT: Final = re.compile(r":([0-9]+)\s*(?=,|$)", re.ASCII)


class Endpoint(NamedTuple):
    """A listener of a broker: its name, and where it is bound or found."""

    listener: str
    host: str
    """Without brackets; empty where it was left out."""
    port: int
    """0 takes any free one, or stands for the one that was taken."""
    security_protocol: str = PLAINTEXT


def check_advertised_names(advertised: Sequence[str], names: Sequence[str]) -> None:
    """Raise ConfigError when clients would be told of a listener that there is not."""
    if not set(advertised) <= set(names):
        raise ConfigError(
            f"requirement failed: {ADVERTISED_LISTENERS} listener names must be equal to or a subset"
            f" of the ones defined in {LISTENERS}. Found {','.join(advertised)}. The valid options"
            f" based on the current configuration are {','.join(names)}"
        )


def parse_protocol_map(text: str) -> dict[str, str]:
    """Return the security protocol of each listener name. Raises ConfigError."""
    protocols = {}
    for pair in text.split(",") if text.strip() else ():
        name, colon, protocol = pair.strip().rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property '{PROTOCOL_MAP}': begin 0, end -1, length {len(pair.strip())}"
            )
        if protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(f"Invalid security protocol `{protocol.strip()}` defined in {PROTOCOL_MAP}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_endpoints(
    key: str, parts: Sequence[str], protocols: Mapping[str, str], *, default_host: str = ""
) -> list[Endpoint]:
    """Return the endpoints of `listeners` or `advertised.listeners`. Raises ConfigError."""
    if not parts:
        raise ConfigError(f"Configuration '{key}' must not be empty. Valid values include: any non-empty value")
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
    """Refuse two listeners of one name, or on one port but for IPv4 beside IPv6."""
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
    """Return the names in a list of listeners, upper case; what has no name is left to `parse_endpoints`."""
    return [part.partition("://")[0].strip().upper() for part in text.split(",") if "://" in part]


def shift_ports(text: str, by: int) -> str:
    """Return a list of listeners with larger ports; 0 stays 0."""
    return _PORT.sub(lambda found: f":{int(found[1]) + by if int(found[1]) else 0}", text)
