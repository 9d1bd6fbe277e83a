"""The broker configurations of Kafka 4.3 that change nothing here and are known by their facts only.

Names, types, defaults, limits and modes come from `other_configs.jsonl`, which
`python -m tools.update_other_configs` writes. They are read when somebody sets or describes one, not
when a cluster starts.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from broker_sim.config.definition import Between, ConfigDef, ConfigType, ListOf, OneOf, UpdateMode, Validator

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
"""Numbers of threads, which a running broker changes in small steps only."""

REASONS: Final = (
    ("sasl.jaas.config", "it is read for a listener and a mechanism only, as by Kafka"),
    ("sasl.kerberos.", "there is no Kerberos"),
    ("sasl.oauthbearer.", "brokers do not log in to each other"),
    ("sasl.server.", "callbacks are Java's"),
    ("sasl.", "brokers do not log in to each other"),
    ("ssl.", "TLS is that of OpenSSL, with its own choice"),
    ("security.inter.broker.protocol", "brokers have no connections among each other"),
    ("security.", "it is Java's"),
    ("principal.", "principals are those of Kafka's own builder"),
    ("remote.", "there is no tiered storage"),
    ("follower.fetch.last.tiered", "there is no tiered storage"),
    ("log.local.", "there is no tiered storage"),
    ("controller.quorum.", "there is no Raft quorum"),
    ("metadata.", "there is no metadata log"),
    ("group.coordinator.", "a coordinator writes what one turn of the event loop has, on one thread"),
    ("group.share.assignors", "share groups have one assignor, which is Kafka's"),
    ("share.coordinator.", "a coordinator writes what one turn of the event loop has, on one thread"),
    ("unstable.", "there is nothing unstable to enable"),
    ("client.quota", "quotas are those of the default callback"),
    ("alter.log.dirs", "a broker has one log directory"),
    ("telemetry.", "clients send no telemetry"),
    ("metric", "metrics are those of the control port"),
    ("kafka.metrics", "metrics are those of the control port"),
    ("num.", "a broker is one thread"),
    ("background.threads", "a broker is one thread"),
    ("early.start.listeners", "all listeners open when a broker is unfenced"),
    ("controller.listener", "no controller has a socket, so these are left out of the listeners"),
    ("transaction.", "transactions are not served"),
    ("offsets.", "consumer groups are not served"),
)
"""Why a configuration changes nothing, by how its name begins; the first that fits."""

_RANGE: Final = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\]")
_WORDS: Final = re.compile(r"\[(\w+(?:, \w+)*)\]")


@cache
def other_configs() -> Mapping[str, ConfigDef]:
    """Return their definitions by name."""
    lines = files(__package__).joinpath("other_configs.jsonl").read_text("utf-8").splitlines()
    definitions = (_definition(*json.loads(line)) for line in lines)
    return MappingProxyType({definition.name: definition for definition in definitions})


def why_without_effect(name: str) -> str:
    """Return why a configuration of this file changes nothing."""
    return next((why for start, why in REASONS if name.startswith(start)), "not simulated")


def thread_count_reason(name: str, value: int, current: int) -> str:
    """Return why a running broker refuses this number of threads; empty if it does not."""
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


def _definition(name: str, type_name: str, default: str | None, limits: str, mode: str) -> ConfigDef:
    config_type = ConfigType[type_name]
    return ConfigDef(
        name=name,
        attribute="",
        type=config_type,
        default=default,
        doc="",
        validator=_validator(limits, config_type),
        update_mode=UpdateMode(mode),
        internal=False,
    )


def _validator(limits: str, config_type: ConfigType) -> Validator | None:
    """Return the check that Kafka words so; None without one, or for one of its own kind."""
    if bounds := _RANGE.fullmatch(limits):
        low, high = (None if end is None else _number(end) for end in bounds.groups())
        return Between(low, high)
    if words := _WORDS.fullmatch(limits):
        allowed = tuple(words[1].split(", "))
        return ListOf(allowed) if config_type is ConfigType.LIST else OneOf(allowed)
    return None


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
