"""The content of a DescribeConfigs response: values with their sources, and the levels of loggers.

Mirrors `kafka.server.ConfigHelper`, `DynamicBrokerConfig.brokerConfigSynonyms` and `LoggingController`. Values of
passwords, and internal configurations that are not set, are left out. As in Kafka, a value that is set only in
another unit (such as `log.retention.hours` for `log.retention.ms`) has no synonyms and counts as a default, and a
value replaced at run time by another unit is described by its default. Entries are in the order of Java's hash
maps: first set configurations that are not public, then the public ones. The loggers are those of the process: all
its brokers share them, and a changed level outlives a broker.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from functools import cache
from itertools import dropwhile
from typing import Final, NamedTuple

from broker_sim.config.broker_config import BrokerConfig, applicable, every_broker_config
from broker_sim.config.definition import ConfigDef, ConfigType, UpdateMode, to_text
from broker_sim.config.listeners import without_listener
from broker_sim.config.other_configs import config_order
from broker_sim.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, default_of_group_config
from broker_sim.config.security_configs import OF_THE_AUTHORIZER
from broker_sim.config.server_configs import REPLICATION_QUOTA_CONFIGS
from broker_sim.config.topic_config import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS, effective_topic_config
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order

_UNIT_VARIANTS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_TOPIC_BUCKETS: Final = 64
_GROUP_BUCKETS: Final = 32
_BROKER_BUCKETS: Final = 512
"""Number of buckets of Kafka's hash maps, so that a subset of the entries has the same order as all entries."""
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_ROOT: Final = "root"
"""Kafka's name of the root logger."""
_NUMBERS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 0,
}
"""Python's lowest level for each of Kafka's levels, the highest first."""
_TRACE: Final = 5
"""Level for TRACE; 0 would mean the parent's level."""


class ConfigSource(IntEnum):
    """The source of a value, with the codes of the response."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    """One place where a value is set; the first of several synonyms takes effect."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One configuration as a client sees it."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the value is a default."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class BrokerConfigs(NamedTuple):
    """One broker's static configuration and the dynamic ones of its cluster and of itself."""

    static: BrokerConfig
    cluster: Mapping[str, str]
    broker: Mapping[str, str]
    is_at_least: Callable[[str], bool] = lambda _release: True
    """Whether the broker is of that release of Kafka, such as "4.4", or a newer one."""

    def of_release(self, definitions: Mapping[str, ConfigDef]) -> Mapping[str, ConfigDef]:
        """Return the definitions of the broker's release."""
        return {name: each for name, each in definitions.items() if each.is_in(self.is_at_least)}

    def describe_topic(
        self, topic_configs: Mapping[str, str], names: Collection[str] | None = None
    ) -> list[ConfigEntry]:
        """Return the topic's configurations, all or those of `names`."""
        effective = effective_topic_config(
            self.static, applicable(self.static, self.cluster, self.broker), topic_configs
        )

        def entry(definition: ConfigDef) -> ConfigEntry:
            name = definition.name
            value = to_text(getattr(effective, definition.attribute))
            synonym = TOPIC_CONFIG_SYNONYMS.get(name)
            synonyms = () if synonym is None else self.synonyms(synonym)
            if name in topic_configs:
                own = ConfigSynonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG)
                synonyms = (own, *synonyms)
            return _entry(definition, value, synonyms, read_only=False)

        internal = [d for name, d in TOPIC_CONFIGS.items() if d.internal and name in topic_configs]
        own = [entry(d) for d in internal if names is None or d.name in names]
        return own + _ordered(_entries(self.of_release(TOPIC_CONFIGS), names, entry), _TOPIC_BUCKETS)

    def describe_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """Return the broker's configurations, all or those of `names`."""
        effective = self.static.with_dynamic(applicable(self.static, self.cluster, self.broker))

        def entry(definition: ConfigDef) -> ConfigEntry:
            name = definition.name
            value = effective.text_of(definition)
            if name not in dynamic and not dynamic.isdisjoint(_variants(name)):
                value = to_text(definition.default)
            return _broker_entry(definition, value, self.synonyms(name))

        dynamic = self.cluster.keys() | self.broker.keys()
        definitions = self.of_release(every_broker_config())
        entries = _entries({name: definitions[name] for name in config_order() if name in definitions}, names, entry)
        entries = _ordered(entries, _BROKER_BUCKETS)
        originals = {**self.static.originals, **self.cluster, **self.broker}
        own = _of_quotas(self, names) + _of_plugins(self, names, self.static.originals)
        by_name = {one.name: one for one in own}
        return [by_name[name] for name in hash_order(originals, string_hash) if name in by_name] + entries

    def describe_cluster(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """Return the cluster's dynamic configurations, all or those of `names`."""
        own = self._replace(broker={})

        def entry(definition: ConfigDef) -> ConfigEntry:
            return _broker_entry(definition, self.cluster[definition.name], own.synonyms(definition.name))

        entries = _entries(self.of_release(every_broker_config()), names, entry, only=self.cluster)
        entries += _of_quotas(own, names) + _of_plugins(own, names)
        by_name = {one.name: one._replace(synonyms=_of_cluster(one.synonyms)) for one in entries}
        return [by_name[name] for name in hash_order(self.cluster, string_hash) if name in by_name]

    def synonyms(self, name: str) -> tuple[ConfigSynonym, ...]:
        """Return the places where the broker configuration is set, the effective one first."""
        places = (
            (self.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static.originals, ConfigSource.STATIC_BROKER_CONFIG),
            (_defaults(), ConfigSource.DEFAULT_CONFIG),
        )
        base = without_listener(name)
        variants = _variants(name) if base == name else (name, base)
        synonyms = (
            ConfigSynonym(variant, values[variant], source)
            for values, source in places
            for variant in variants
            if variant in values
        )
        return tuple(dropwhile(lambda synonym: synonym.name != name, synonyms))


@cache
def _defaults() -> Mapping[str, str]:
    """Return the defaults as texts; node.id is required in Kafka and has none."""
    texts = ((name, to_text(d.default)) for name, d in every_broker_config().items())
    return {name: text for name, text in texts if text is not None and name != "node.id"}


def _variants(name: str) -> tuple[str, ...]:
    """Return the configurations of the same value in all units, the finest first."""
    if name == _FLUSH[0]:
        return _FLUSH
    return next((names for names in _UNIT_VARIANTS if name in names), (name,))


def _entries(
    definitions: Mapping[str, ConfigDef],
    names: Collection[str] | None,
    entry: Callable[[ConfigDef], ConfigEntry],
    only: Collection[str] | None = None,
) -> list[ConfigEntry]:
    return [
        entry(definition)
        for name, definition in definitions.items()
        if not definition.internal and (names is None or name in names) and (only is None or name in only)
    ]


def _of_cluster(synonyms: Iterable[ConfigSynonym]) -> tuple[ConfigSynonym, ...]:
    return tuple(one for one in synonyms if one.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)


def _ordered(entries: Iterable[ConfigEntry], buckets: int) -> list[ConfigEntry]:
    """Return the entries in the order of a hash map with at least that many buckets."""
    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in hash_order(by_name, string_hash, buckets)]


def _of_quotas(configs: BrokerConfigs, names: Collection[str] | None) -> list[ConfigEntry]:
    """Return the entries of replication quotas that are set; they have no defaults."""
    dynamic = {**configs.cluster, **configs.broker}

    def entry(definition: ConfigDef) -> ConfigEntry:
        name = definition.name
        return _broker_entry(definition, dynamic[name], configs.synonyms(name))._replace(documentation=None)

    return _entries(REPLICATION_QUOTA_CONFIGS, names, entry, only=dynamic)


def _of_plugins(
    configs: BrokerConfigs, names: Collection[str] | None, static: Collection[str] = ()
) -> list[ConfigEntry]:
    """Return the entries of single listeners, internal ones, and unknown ones without their values (maybe secrets)."""
    definitions = {**configs.of_release(every_broker_config()), **REPLICATION_QUOTA_CONFIGS}
    values = {**configs.static.originals, **configs.cluster, **configs.broker}
    undefined = {*configs.cluster, *configs.broker, *static} - {n for n, d in definitions.items() if not d.internal}
    entries = []
    for name in undefined if names is None else undefined.intersection(names):
        definition = None if name in OF_THE_AUTHORIZER else definitions.get(without_listener(name))
        synonyms = configs.synonyms(name)
        if definition is not None:
            value = None if definition.type is ConfigType.PASSWORD else to_text(definition.parse(values[name]))
            doc = definition.doc if name == definition.name else None
            read_only = name != definition.name or definition.update_mode is UpdateMode.READ_ONLY
            entry = _entry(definition, value, synonyms, read_only=read_only)
            entries.append(entry._replace(name=name, documentation=doc))
            continue
        entries.append(
            ConfigEntry(
                name,
                value=None,
                source=synonyms[0].source,
                type=ConfigType.UNKNOWN,
                read_only=True,
                synonyms=tuple(
                    synonym._replace(value=None)
                    for synonym in synonyms
                    if synonym.source is not ConfigSource.DEFAULT_CONFIG
                ),
                documentation=None,
                is_sensitive=True,
            )
        )
    return entries


def _broker_entry(definition: ConfigDef, value: str | None, synonyms: tuple[ConfigSynonym, ...]) -> ConfigEntry:
    read_only = definition.update_mode is UpdateMode.READ_ONLY
    return _entry(definition, value, synonyms, read_only=read_only)


def _entry(
    definition: ConfigDef, value: str | None, synonyms: tuple[ConfigSynonym, ...], *, read_only: bool
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    if definition.is_sensitive:
        value = None
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    return ConfigEntry(
        name=definition.name,
        value=value,
        source=source,
        type=definition.type,
        read_only=read_only,
        synonyms=synonyms,
        documentation=definition.doc,
        is_sensitive=definition.is_sensitive,
    )


def describe_group(
    configs: BrokerConfigs, own: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Return the configurations of a group, all or those of `names`; `own` are those set for the group."""
    entries = []
    for definition in sorted(configs.of_release(GROUP_CONFIGS).values(), key=lambda definition: definition.name):
        if definition.internal:
            if definition.name not in own:
                continue
            entry = _default(definition, configs.synonyms(default_of_group_config(definition.name)))
        elif definition.default is None:
            (of_broker,) = configs.describe_broker([default_of_group_config(definition.name)])
            entry = of_broker._replace(name=definition.name, type=definition.type, read_only=False)
        else:
            default = to_text(definition.default)
            synonym = ConfigSynonym(definition.name, default, ConfigSource.DEFAULT_CONFIG)
            entry = _default(definition, (synonym,))
        entries.append(_with_own(definition, entry, own, ConfigSource.GROUP_CONFIG))
    chosen = {entry.name: entry for entry in _chosen(entries, names)}
    internal = [chosen.pop(n) for n in hash_order(own, string_hash) if n in chosen and GROUP_CONFIGS[n].internal]
    return internal + _ordered(chosen.values(), _GROUP_BUCKETS)


def describe_client_metrics(own: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the configurations of a client metrics subscription: `own`, and defaults for the rest."""
    source = ConfigSource.CLIENT_METRICS_CONFIG
    return _chosen(
        (_with_own(definition, _default(definition), own, source) for definition in CLIENT_METRICS_CONFIGS.values()),
        names,
    )


def describe_loggers(names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the levels of the broker's loggers in this process."""
    return _chosen((_logger(name) for name in _loggers()), names)


def alter_loggers(levels: Iterable[tuple[str, str | None]], *, validate_only: bool) -> None:
    """Set levels by Kafka's names; None removes a logger's own level, so that it inherits its parent's.

    All or none; mirrors `RuntimeLoggerManager`. Raises ApiError: INVALID_CONFIG for a logger or a
    level that does not exist, INVALID_REQUEST for the removal of the root's level.
    """
    loggers = frozenset(_loggers())
    numbers = []
    for name, level in levels:
        if name not in loggers:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if level is None and name == _ROOT:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
        if level is not None and level not in _NUMBERS:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level} as it is not a supported log"
                f" level. Valid log levels are {', '.join(sorted(_NUMBERS))}",
            )
        numbers.append((name, logging.NOTSET if level is None else max(_NUMBERS[level], _TRACE)))
    if not validate_only:
        for name, number in numbers:
            _named(name).setLevel(number)


def _loggers() -> list[str]:
    of_broker = (name for name in logging.root.manager.loggerDict if name.startswith("broker_sim"))
    return [_ROOT, *of_broker]


def _named(name: str) -> logging.Logger:
    return logging.getLogger(None if name == _ROOT else name)


def _default(definition: ConfigDef, synonyms: tuple[ConfigSynonym, ...] = ()) -> ConfigEntry:
    return ConfigEntry(
        name=definition.name,
        value=to_text(definition.default),
        source=ConfigSource.DEFAULT_CONFIG,
        type=definition.type,
        read_only=False,
        synonyms=synonyms,
        documentation=definition.doc,
    )


def _with_own(definition: ConfigDef, entry: ConfigEntry, own: Mapping[str, str], source: ConfigSource) -> ConfigEntry:
    """Return the entry with the value set for its resource, if there is one."""
    text = own.get(definition.name)
    if text is None:
        return entry
    value = to_text(definition.parse(text))
    synonym = ConfigSynonym(definition.name, value, source)
    return entry._replace(value=value, source=source, synonyms=(synonym, *entry.synonyms))


def _logger(name: str) -> ConfigEntry:
    number = _named(name).getEffectiveLevel()
    return ConfigEntry(
        name=name,
        value=next(level for level, least in _NUMBERS.items() if number >= least),
        source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
        type=ConfigType.UNKNOWN,
        read_only=False,
        synonyms=(),
        documentation="",
    )


def _chosen(entries: Iterable[ConfigEntry], names: Collection[str] | None) -> list[ConfigEntry]:
    return [entry for entry in entries if names is None or entry.name in names]
