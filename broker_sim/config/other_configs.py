"""Kafka's configurations that have no effect in the simulator, with the reason.

They are accepted, so that a configuration made for Kafka can be used unchanged, and a cluster logs
`configuration_without_effect` once when one is set. There are two kinds: some are declared in Python with those
that have an effect; the others are only in `other_configs.jsonl`, which `python -m tools.update_other_configs`
writes and which is read when one of them is set or described. A test compares the tables with the configurations
that the simulator reads.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import Final

from broker_sim.config.definition import Between, ConfigDef, ConfigType, ListOf, OneOf, UpdateMode, Validator
from broker_sim.config.listeners import PER_LISTENER, without_listener

CLEANER_THREADS: Final = "log.cleaner.threads"
THREADS: Final = frozenset(
    {
        CLEANER_THREADS,
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.reader.threads",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
    }
)
"""Thread counts, which a running broker changes only in small steps."""

_NO_TIERS: Final = "there is no tiered storage"

REASONS: Final = (
    ("sasl.jaas.config", "it is read only for a listener and a mechanism, as by Kafka"),
    ("sasl.kerberos.", "there is no Kerberos"),
    ("sasl.oauthbearer.", "brokers do not log in to each other"),
    ("sasl.server.", "callback handlers are Java classes"),
    ("sasl.", "brokers do not log in to each other"),
    ("ssl.", "OpenSSL chooses the parameters of TLS"),
    ("security.inter.broker.protocol", "brokers have no connections to each other"),
    ("security.", "it configures Java's security providers"),
    ("principal.", "principals are those of Kafka's own builder"),
    ("remote.", _NO_TIERS),
    ("follower.fetch.last.tiered", _NO_TIERS),
    ("log.local.", _NO_TIERS),
    ("log.remote.", _NO_TIERS),
    ("controller.quorum.", "there is no Raft quorum"),
    ("metadata.", "there is no metadata log"),
    ("group.coordinator.", "a coordinator writes once per turn of the event loop, on one thread"),
    ("group.share.assignors", "share groups have one assignor, which is Kafka's"),
    ("group.streams.assignors", "streams groups have one assignor, which is Kafka's"),
    ("group.streams.assignor.offload", "an assignor runs at once"),
    ("share.coordinator.", "a coordinator writes once per turn of the event loop, on one thread"),
    ("client.quota", "quotas are those of the default callback"),
    ("alter.log.dirs", "moves between log directories are measured with the replication.quota.window configurations"),
    ("telemetry.", "read only where `metric.reporters` lets clients push metrics"),
    ("metric.reporters", "any name but Kafka's own at the start lets clients push metrics; others are not loaded"),
    ("metric", "metrics are those of the control port"),
    ("kafka.metrics", "metrics are those of the control port"),
    ("num.", "a broker is one thread"),
    ("background.threads", "a broker is one thread"),
    ("early.start.listeners", "all listeners open when a broker is unfenced"),
    ("controller.listener", "each broker opens its own of these listeners; all lead to the one controller"),
)
"""Reason why a configuration of `other_configs.jsonl` has no effect, by prefix; the first match counts."""

_NOT_EMPTY: Final = "not empty"
_RANGE: Final = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\]")
_WORDS: Final = re.compile(r"(\(case insensitive\) )?\[(\w+(?:, \w+)*)\]")


@cache
def other_configs() -> Mapping[str, ConfigDef]:
    """Return the definitions in `other_configs.jsonl`, by name."""
    # Read by the package loader, because `open` and Path may be pyfakefs's.
    lines = get_data(__name__, "other_configs.jsonl")
    assert lines is not None
    definitions = (_definition(*json.loads(line)) for line in lines.splitlines())
    return MappingProxyType({definition.name: definition for definition in definitions})


@cache
def config_order() -> tuple[str, ...]:
    """Return the names of all of Kafka's broker configurations, in the order in which Kafka defines them."""
    data = get_data(__name__, "config_order.txt")
    assert data is not None
    return tuple(data.decode().split())


def why_without_effect(name: str) -> str:
    """Return the reason why a configuration has no effect, or why its change has none."""
    own = without_listener(name)
    if own in CHANGE_WITHOUT_EFFECT:
        return "it is read when the cluster starts"
    why = BROKER_WITHOUT_EFFECT.get(own) or TOPIC_WITHOUT_EFFECT.get(own)
    return why or next((why for start, why in REASONS if own.startswith(start)), "not simulated")


def thread_count_reason(name: str, value: int, current: int) -> str:
    """Return the reason why a running broker refuses this thread count, empty if it accepts it."""
    if current // 2 <= value <= current * 2:
        return ""
    if name == CLEANER_THREADS:
        change = "increased to more than double" if value > current else "reduced to less than half"
        return f"Log cleaner threads cannot be {change} the current value {current}"
    limit = "not be greater than double" if value > current else "be at least half"
    return (
        f"Dynamic thread count update validation failed for {name}={value},"
        f" value should {limit} the current value {current}"
    )


def _definition(
    name: str, type_name: str, default: str | None, limits: str, mode: str, internal: bool, since: str = ""
) -> ConfigDef:
    config_type = ConfigType[type_name]
    return ConfigDef(
        name=name,
        attribute="",
        type=config_type,
        default=default,
        doc=f"Accepted without an effect: {why_without_effect(name)}.",
        validator=_validator(limits, config_type),
        update_mode=UpdateMode(mode),
        internal=internal,
        since=since,
    )


def _validator(limits: str, config_type: ConfigType) -> Validator | None:
    """Return the validator for limits in Kafka's notation; None for no limits, or for other kinds of limits."""
    if config_type is ConfigType.LIST:
        may_be_empty = not limits.startswith(_NOT_EMPTY)
        words = _WORDS.fullmatch(limits.removeprefix(_NOT_EMPTY).strip())
        return ListOf(tuple(words[2].split(", ")) if words else (), may_be_empty)
    if bounds := _RANGE.fullmatch(limits):
        low, high = (None if end is None else _number(end) for end in bounds.groups())
        return Between(low, high)
    if words := _WORDS.fullmatch(limits):
        allowed = tuple(words[2].split(", "))
        if words[1]:
            return OneOf(allowed, ignores_case=True)
        return OneOf(allowed)
    return None


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


_OWN_DIRECTORY: Final = "logs are in memory, or in the directory of --data-dir"
_NO_PREPARED_FILES: Final = "files are not preallocated"

_BROKER_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    _OWN_DIRECTORY: ("log.dir",),
    _NO_PREPARED_FILES: ("log.preallocate",),
    "one fetcher follows each leader": ("num.replica.fetchers",),
    "a starting broker retries its registration forever": ("initial.broker.registration.timeout.ms",),
    "there is no metadata log": ("metadata.max.idle.interval.ms",),
    "sockets use the operating system's buffers": ("socket.receive.buffer.bytes", "socket.send.buffer.bytes"),
    "requests are not queued: each is handled as soon as it has been read": ("queued.max.requests",),
}

_TOPIC_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_PREPARED_FILES: ("preallocate",),
    _NO_TIERS: (
        "local.retention.bytes",
        "local.retention.ms",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    ),
}


def _by_name(reasons: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    return MappingProxyType({name: why for why, names in reasons.items() for name in names})


BROKER_WITHOUT_EFFECT: Final = _by_name(_BROKER_REASONS)
"""Broker configurations without effect: the reason by name."""

TOPIC_WITHOUT_EFFECT: Final = _by_name(_TOPIC_REASONS)
"""Topic configurations without effect: the reason by name."""

CHANGE_WITHOUT_EFFECT: Final = PER_LISTENER | {
    "listener.security.protocol.map",
    "listeners",
    "sasl.enabled.mechanisms",
    "ssl.client.auth",
    "ssl.enabled.protocols",
}
"""Broker configurations that have an effect if set statically, but not dynamically."""
