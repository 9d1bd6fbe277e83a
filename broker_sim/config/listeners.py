"""What a running broker refuses of `listeners`, the limits of connections and `metric.reporters`.

Mirrors `DynamicListenerConfig`, `ConnectionQuotas.validateReconfiguration` and
`DynamicMetricsReporters`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from broker_sim.config.endpoints import LISTENERS, check_advertised_names, parse_endpoints, parse_protocol_map
from broker_sim.config.per_listener import PREFIX
from broker_sim.errors import ConfigError

METRIC_REPORTERS: Final = "metric.reporters"
OVERRIDES: Final = "max.connections.per.ip.overrides"

PER_IP: Final = "max.connections.per.ip"
_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"
"""The one class of this kind that Kafka itself has."""
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*", re.ASCII)
_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT_BITS: Final = 32


def check_listeners(text: str, protocol_map: str, advertised: Sequence[str]) -> None:
    """Raise ConfigError when a broker cannot listen so.

    `protocol_map` is `listener.security.protocol.map`; `advertised` are the names of the listeners
    that clients are told of.
    """
    parts = list(dict.fromkeys(part.strip() for part in text.split(","))) if text.strip() else []
    protocols = {"CONTROLLER": "PLAINTEXT", **parse_protocol_map(protocol_map)}
    found = parse_endpoints(LISTENERS, parts, protocols)
    check_advertised_names(advertised, [each.listener for each in found])


def parse_overrides(text: str) -> dict[str, int]:
    """Return the numbers by host of a list of `host:number`; no host is looked up. Raises ConfigError."""
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
    """Raise ConfigError when no address may connect, and for overrides that are none."""
    if not parse_overrides(overrides) and not limit:
        raise ConfigError(f"requirement failed: {PER_IP} can be set to zero only if {OVERRIDES} property is set.")


def check_connection_limits(set_now: Mapping[str, str], listeners: Iterable[str]) -> None:
    """Raise ConfigError for a limit of 0, of the broker or of one of its listeners, that `set_now` has."""
    prefixes = ("", *(f"{PREFIX}{listener.lower()}." for listener in listeners))
    for name in ("max.connections", "max.connection.creation.rate"):
        if any(_is_zero(set_now.get(prefix + name)) for prefix in prefixes):
            raise ConfigError(
                "Invalid value org.apache.kafka.common.config.ConfigException:"
                f" Invalid {name} 0 for configuration Invalid dynamic configuration"
            )


def _is_zero(text: str | None) -> bool:
    return text is not None and int(text) == 0


def check_metric_reporters(text: str) -> None:
    """Raise ConfigError for a class that Kafka does not have; plugins are not known here."""
    if all(part.strip() == _REPORTER for part in text.split(",")) or not text.strip():
        return
    raise ConfigError(
        "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config"
        f" update of Set({METRIC_REPORTERS}) failed with class class"
        " kafka.server.DynamicMetricsReporters for configuration Invalid dynamic configuration"
    )


def _split_as_java(text: str) -> list[str]:
    """Return the parts between commas; empty ones at the end do not count, as in Java."""
    parts = [part.strip() for part in text.split(",")] if text else []
    while parts and not parts[-1]:
        parts.pop()
    return parts
