"""The content of a DescribeConfigs response: values, and where each comes from.

Mirrors `kafka.server.ConfigHelper` and `DynamicBrokerConfig.brokerConfigSynonyms`. Internal
configurations are left out, and values of passwords are not told. As in Kafka, a value that is set in another unit only (such as
`log.retention.hours` for `log.retention.ms`) has no synonyms and counts as a default.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import dropwhile
from typing import Final

from broker_sim.config.broker_config import BrokerConfig, every_broker_config
from broker_sim.config.definition import ConfigDef, ConfigType, UpdateMode, to_text
from broker_sim.config.quota_configs import REPLICATION_QUOTA_CONFIGS
from broker_sim.config.topic_config import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS, effective_topic_config

_UNIT_VARIANTS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class ConfigSource(IntEnum):
    """Where a value comes from, with the codes of the response."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One place where a value is set; the first of several is in effect."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
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
        """Whether the value is not set anywhere."""
        return self.source is ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class BrokerConfigs:
    """One broker's static configuration and the dynamic ones of its cluster and of itself."""

    static: BrokerConfig
    cluster: Mapping[str, str]
    broker: Mapping[str, str]

    def describe_topic(
        self, topic_configs: Mapping[str, str], names: Collection[str] | None = None
    ) -> list[ConfigEntry]:
        """Return the topic's configurations, all or those of `names`."""
        effective = effective_topic_config(self.static, {**self.cluster, **self.broker}, topic_configs)

        def entry(definition: ConfigDef) -> ConfigEntry:
            name = definition.name
            value = to_text(getattr(effective, definition.attribute))
            synonym = TOPIC_CONFIG_SYNONYMS.get(name)
            synonyms = () if synonym is None else self.synonyms(synonym)
            if name in topic_configs:
                own = ConfigSynonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG)
                synonyms = (own, *synonyms)
            return _entry(definition, value, synonyms, read_only=False)

        return _entries(TOPIC_CONFIGS, names, entry)

    def describe_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """Return the broker's configurations, all or those of `names`."""
        effective = self.static.with_dynamic({**self.cluster, **self.broker})

        def entry(definition: ConfigDef) -> ConfigEntry:
            value = effective.text_of(definition)
            return _broker_entry(definition, value, self.synonyms(definition.name))

        known = _entries(every_broker_config(), names, entry)
        return known + _of_quotas(self, names) + _of_plugins(self, names, self.static.originals)

    def describe_cluster(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """Return the cluster's dynamic configurations, all or those of `names`."""

        def entry(definition: ConfigDef) -> ConfigEntry:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            synonyms = tuple(s for s in self.synonyms(definition.name) if s.source is source)
            return _broker_entry(definition, self.cluster[definition.name], synonyms)

        known = _entries(every_broker_config(), names, entry, only=self.cluster)
        own = replace(self, broker={})
        return known + _of_quotas(own, names) + _of_plugins(own, names)

    def synonyms(self, name: str) -> tuple[ConfigSynonym, ...]:
        """Return the places where the broker configuration is set, the one in effect first."""
        places = (
            (self.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static.originals, ConfigSource.STATIC_BROKER_CONFIG),
            (_defaults(), ConfigSource.DEFAULT_CONFIG),
        )
        variants = _variants(name)
        found = (
            ConfigSynonym(variant, values[variant], source)
            for values, source in places
            for variant in variants
            if variant in values
        )
        return tuple(dropwhile(lambda synonym: synonym.name != name, found))


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


def _of_quotas(configs: BrokerConfigs, names: Collection[str] | None) -> list[ConfigEntry]:
    """Return what is set of the quotas of replication, which have no defaults."""
    dynamic = {**configs.cluster, **configs.broker}

    def entry(definition: ConfigDef) -> ConfigEntry:
        name = definition.name
        return _broker_entry(definition, dynamic[name], configs.synonyms(name))

    return _entries(REPLICATION_QUOTA_CONFIGS, names, entry, only=dynamic)


def _of_plugins(
    configs: BrokerConfigs, names: Collection[str] | None, static: Collection[str] = ()
) -> list[ConfigEntry]:
    """Return what is set of unknown names, or for one listener. It might be a secret, and is not told."""
    known = every_broker_config().keys() | REPLICATION_QUOTA_CONFIGS.keys()
    unknown = {*configs.cluster, *configs.broker, *static} - known
    entries = []
    for name in sorted(unknown if names is None else unknown.intersection(names)):
        synonyms = tuple(replace(synonym, value=None) for synonym in configs.synonyms(name))
        entries.append(
            ConfigEntry(
                name,
                value=None,
                source=synonyms[0].source,
                type=ConfigType.UNKNOWN,
                read_only=True,
                synonyms=synonyms,
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
        synonyms = tuple(replace(synonym, value=None) for synonym in synonyms)
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
