"""Configurations of groups, of subscriptions to client metrics, and of a broker's loggers.

Mirrors `ConfigHelper` and `LoggingController`. The loggers are those of the process: all brokers in it
share them, and a level that was set stays when a broker ends.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from broker_sim.config.broker_config import every_broker_config
from broker_sim.config.definition import ConfigDef, ConfigType, to_text
from broker_sim.config.describe import BrokerConfigs, ConfigEntry, ConfigSource, ConfigSynonym
from broker_sim.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from broker_sim.errors import ApiError, ErrorCode

_ROOT: Final = "root"
_NUMBERS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 0,
}
"""Kafka's levels, the highest first, by the least number that counts as each."""
_TRACE: Final = 5
"""What TRACE is set to: 0 would mean that the parent's level holds."""


def describe_group(
    configs: BrokerConfigs, own: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Return the configurations of a group, all or those of `names`; `own` are set for it alone."""
    entries = []
    for definition in sorted(GROUP_CONFIGS.values(), key=lambda definition: definition.name):
        if definition.default is None:
            (of_broker,) = configs.describe_broker([f"group.{definition.name}"])
            entry = replace(
                of_broker, name=definition.name, type=every_broker_config()[of_broker.name].type, read_only=False
            )
        else:
            default = to_text(definition.default)
            synonym = ConfigSynonym(definition.name, default, ConfigSource.DEFAULT_CONFIG)
            entry = _default(definition, (synonym,))
        entries.append(_with_own(definition, entry, own, ConfigSource.GROUP_CONFIG))
    return _chosen(entries, names)


def describe_client_metrics(own: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the configurations of a subscription, `own` and for the rest the defaults."""
    source = ConfigSource.CLIENT_METRICS_CONFIG
    return _chosen(
        (_with_own(definition, _default(definition), own, source) for definition in CLIENT_METRICS_CONFIGS.values()),
        names,
    )


def describe_loggers(names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the levels of the loggers of this process that belong to the broker."""
    return _chosen((_logger(name) for name in _loggers()), names)


def alter_loggers(levels: Iterable[tuple[str, str | None]], *, validate_only: bool) -> None:
    """Set levels by Kafka's names; None removes a logger's own level, so that its parent's holds.

    All or none; mirrors `RuntimeLoggerManager`. Raises ApiError: INVALID_CONFIG for a logger or a
    level that does not exist, INVALID_REQUEST for the removal of the root's level.
    """
    known = frozenset(_loggers())
    numbers = []
    for name, level in levels:
        if name not in known:
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
        documentation="",
    )


def _with_own(definition: ConfigDef, entry: ConfigEntry, own: Mapping[str, str], source: ConfigSource) -> ConfigEntry:
    """Return the entry with what is set for its resource alone, if anything is."""
    text = own.get(definition.name)
    if text is None:
        return entry
    value = to_text(definition.parse(text))
    synonym = ConfigSynonym(definition.name, value, source)
    return replace(entry, value=value, source=source, synonyms=(synonym, *entry.synonyms))


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
