"""Configurations of a group and of a client metrics subscription.

Mirrors `GroupConfig` and `ClientMetricsConfigs`. Broker configurations limit a group's values: those of
`consumer.session.timeout.ms` are limited by `group.consumer.min.session.timeout.ms` and
`group.consumer.max.session.timeout.ms`.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from broker_sim.config.broker_config import BrokerConfig, every_broker_config
from broker_sim.config.coordinator_configs import STREAMS_ASSIGNORS, check_tags, streams_assignors
from broker_sim.config.definition import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    ConfigDef,
    ConfigType,
    ConfigValue,
    ListOf,
    OneOf,
    UpdateMode,
    Validator,
    at_least,
    unknown_name,
)
from broker_sim.errors import ApiError, ConfigError, ErrorCode, did_you_mean

_EARLIEST: Final = "earliest"
_OFFSET_RESETS: Final = (_EARLIEST, "latest")
_DURATION: Final = re.compile(
    r"by_duration:\+?P(?=.)(?:(\d+)D)?"
    r"(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)
_MIN_INTERVAL_MS: Final = 100
_MAX_INTERVAL_MS: Final = 3_600_000
_MATCHED: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""Client properties that a subscription may match."""


def _check_offset_reset(name: str, value: ConfigValue) -> None:
    """Accept `earliest`, `latest` or a duration; mirrors `ShareGroupAutoOffsetResetStrategy`."""
    if value in _OFFSET_RESETS or _DURATION.fullmatch(str(value)):
        return
    raise ConfigError(
        f"Invalid value {value} for configuration {name}: Invalid value `{value}` for configuration"
        f" {name}. The value must be either 'earliest', 'latest' or of the format"
        " 'by_duration:<PnDTnHnMn.nS>'."
    )


class OffsetReset(NamedTuple):
    """Where a share group without a start offset begins; mirrors `ShareGroupAutoOffsetResetStrategy`."""

    is_earliest: bool = False
    """Whether it begins at the log start, otherwise at the log end."""
    duration_ms: int | None = None
    """Maximum age in ms of the first record; None for the start or the end of the log."""


def parse_offset_reset(value: str) -> OffsetReset:
    """Return the parsed value of a valid `share.auto.offset.reset`."""
    duration = _DURATION.fullmatch(value)
    if duration is None:
        return OffsetReset(is_earliest=value == _EARLIEST)
    *whole, fraction = duration.groups(default="0")
    duration_ms = sum(int(number) * unit for number, unit in zip(whole, _UNITS_MS, strict=True))
    return OffsetReset(duration_ms=duration_ms + int(fraction.ljust(3, "0")[:3]))


def _definitions(
    definitions: Iterable[tuple[str, ConfigType, str | None, Validator | None, str]],
    *,
    since: str = "",
    internal: bool = False,
) -> dict[str, ConfigDef]:
    return {
        name: ConfigDef(
            name=name,
            attribute="",
            type=config_type,
            default=default,
            doc=doc,
            validator=ListOf() if config_type is LIST else validator,
            update_mode=UpdateMode.CLUSTER_WIDE,
            internal=internal,
            since=since,
        )
        for name, config_type, default, validator, doc in definitions
    }


DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
DEAD_LETTER_COPY: Final = "errors.deadletterqueue.copy.record.enable"
_STREAMS_ASSIGNOR: Final = "streams.assignor.name"
_STREAMS_TAGS: Final = "streams.rack.aware.assignment.tags"
_OFFLOAD: Final = "Whether the assignor may run beside the coordinator; here it runs at once."


GROUP_CONFIGS: Final[Mapping[str, ConfigDef]] = MappingProxyType(
    {
        **_definitions(
            (
                ("consumer.heartbeat.interval.ms", INT, None, at_least(1), ""),
                ("consumer.session.timeout.ms", INT, None, at_least(1), ""),
                ("share.heartbeat.interval.ms", INT, None, at_least(1), ""),
                ("share.session.timeout.ms", INT, None, at_least(1), ""),
                ("share.record.lock.duration.ms", INT, None, at_least(1_000), ""),
                (
                    "share.auto.offset.reset",
                    STRING,
                    "latest",
                    _check_offset_reset,
                    "Start of a share group without an offset.",
                ),
            )
        ),
        **_definitions(
            (
                (
                    "share.isolation.level",
                    STRING,
                    "read_uncommitted",
                    OneOf(("read_committed", "read_uncommitted")),
                    "Whether a share group reads records of open and aborted transactions.",
                ),
                ("streams.heartbeat.interval.ms", INT, None, at_least(1), ""),
                ("streams.session.timeout.ms", INT, None, at_least(1), ""),
                ("streams.num.standby.replicas", INT, None, at_least(0), ""),
            ),
            since="4.1",
        ),
        **_definitions((("streams.initial.rebalance.delay.ms", INT, None, at_least(0), ""),), since="4.2"),
        **_definitions(
            (
                ("consumer.assignment.interval.ms", INT, None, at_least(0), ""),
                ("share.delivery.count.limit", INT, None, at_least(2), ""),
                ("share.partition.max.record.locks", INT, None, at_least(100), ""),
                ("share.assignment.interval.ms", INT, None, at_least(0), ""),
                (
                    "share.renew.acknowledge.enable",
                    BOOLEAN,
                    "true",
                    None,
                    "Whether a member may renew the lock of a record.",
                ),
                ("streams.assignment.interval.ms", INT, None, at_least(0), ""),
            ),
            since="4.3",
        ),
        **_definitions(
            (
                (
                    DEAD_LETTER_TOPIC,
                    STRING,
                    "",
                    None,
                    "Topic for records that a share group cannot process; empty for none (KIP-1191).",
                ),
                (
                    DEAD_LETTER_COPY,
                    BOOLEAN,
                    "false",
                    None,
                    "Whether a dead letter has the key and value of its record, or only headers.",
                ),
                (_STREAMS_ASSIGNOR, STRING, None, None, ""),
                (_STREAMS_TAGS, LIST, None, None, ""),
            ),
            since="4.4",
        ),
        **_definitions(
            (
                ("consumer.assignor.offload.enable", BOOLEAN, None, None, _OFFLOAD),
                ("share.assignor.offload.enable", BOOLEAN, None, None, _OFFLOAD),
                ("streams.assignor.offload.enable", BOOLEAN, None, None, _OFFLOAD),
                (
                    "streams.acceptable.recovery.lag",
                    LONG,
                    None,
                    at_least(0),
                    "Offsets that a member may lack of a task to count as caught up.",
                ),
                (
                    "streams.num.warmup.replicas",
                    INT,
                    None,
                    at_least(0),
                    "Largest number of tasks that warm up at a time.",
                ),
                (
                    "streams.task.offset.interval.ms",
                    INT,
                    None,
                    at_least(1),
                    "Interval at which members report their offsets of tasks.",
                ),
            ),
            since="4.4",
            internal=True,
        ),
    }
)
"""Group configurations by name; the default is the broker's `group.NAME` unless it is given here."""

CLIENT_METRICS_CONFIGS: Final[Mapping[str, ConfigDef]] = _definitions(
    (
        ("interval.ms", INT, "300000", None, "Interval at which clients push their metrics, in ms."),
        ("match", LIST, "", None, "Patterns that select clients by their properties; empty for all clients."),
        ("metrics", LIST, "", None, "Prefixes of the metrics to push; empty for none, * for all."),
    )
)


def default_of_group_config(name: str) -> str:
    """Return the broker configuration that is the default of a group configuration."""
    return STREAMS_ASSIGNORS if name == _STREAMS_ASSIGNOR else f"group.{name}"


def limits_of_group_config(name: str) -> tuple[str, str]:
    """Return the broker configurations with the minimum and maximum of a number set on a group.

    One or both of them may not exist.
    """
    kind, _, rest = name.partition(".")
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"


def _number(static: BrokerConfig, name: str) -> int | None:
    """Return the value of a numeric broker configuration, None if it does not exist."""
    definition = every_broker_config().get(name)
    text = None if definition is None else static.text_of(definition)
    return None if text is None else int(text)


def group_number(static: BrokerConfig, name: str, text: str) -> int:
    """Return a numeric group configuration, clamped to the broker's limits; mirrors `GroupConfig.evaluate`.

    The limits may have changed since the configuration was set.
    """
    number = int(text)
    low, high = (_number(static, limit) for limit in limits_of_group_config(name))
    if low is not None and number < low:
        return low
    return high if high is not None and number > high else number


def check_group_configs(static: BrokerConfig, configs: Mapping[str, str], *, tells_numbers: bool = False) -> None:
    """Raise ConfigError unless a group may have exactly these configurations.

    The limits are those of `static`, the static configuration of the deciding broker. With `tells_numbers`,
    messages have the values of the limits, as from Kafka 4.4 on, otherwise their names.
    """
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise ConfigError(unknown_name(GROUP_CONFIGS, name, "group"))
    values = {name: GROUP_CONFIGS[name].parse(text) for name, text in configs.items()}
    for name in GROUP_CONFIGS:
        value = values.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        _check_limits(static, name, value, tells_numbers=tells_numbers)
    _check_assignor(static, values.get(_STREAMS_ASSIGNOR))
    check_tags(_STREAMS_TAGS, configs.get(_STREAMS_TAGS, ""))
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms = values.get(session, _number(static, f"group.{session}"))
        heartbeat_ms = values.get(heartbeat, _number(static, f"group.{heartbeat}"))
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        if (session in values or heartbeat in values) and session_ms <= heartbeat_ms:
            raise ConfigError(f"{session} must be greater than {heartbeat}")
    if str(values.get(DEAD_LETTER_TOPIC, "")).startswith("__"):
        raise ConfigError(f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'")


def _check_limits(static: BrokerConfig, name: str, value: int, *, tells_numbers: bool) -> None:
    low, high = limits_of_group_config(name)
    least, most = _number(static, low), _number(static, high)
    is_low, is_high = least is not None and value < least, most is not None and value > most
    if not is_low and not is_high:
        return
    if tells_numbers and least is not None and most is not None:
        raise ConfigError(f"{name} must be in the range {least} to {most} inclusive.")
    if is_low:
        raise ConfigError(f"{name} must be greater than or equal to {least if tells_numbers else low}")
    raise ConfigError(f"{name} must be less than or equal to {most if tells_numbers else high}")


def _check_assignor(static: BrokerConfig, name: ConfigValue) -> None:
    """Raise ConfigError unless the broker has this assignor for streams groups; None stands for its first one."""
    assignors = streams_assignors(static.text_of(every_broker_config()[STREAMS_ASSIGNORS]) or "")
    if name is not None and name not in assignors:
        raise ConfigError(
            f"{_STREAMS_ASSIGNOR} '{name}' is not a registered task assignor."
            f" Registered assignors are: [{', '.join(assignors)}]."
        )


def check_client_metrics_configs(configs: Mapping[str, str]) -> None:
    """Raise an error unless a subscription may have these configurations.

    ApiError with INVALID_REQUEST for an unknown name or an interval out of range, otherwise ConfigError.
    """
    for name in configs:
        if name not in CLIENT_METRICS_CONFIGS:
            hint = did_you_mean(name, CLIENT_METRICS_CONFIGS)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}{hint}")
    values = {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in configs.items()}
    interval_ms = values.get("interval.ms", _MIN_INTERVAL_MS)
    assert isinstance(interval_ms, int)
    if not _MIN_INTERVAL_MS <= interval_ms <= _MAX_INTERVAL_MS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between"
            f" {_MIN_INTERVAL_MS} and {_MAX_INTERVAL_MS} (1 hour)",
        )
    patterns = values.get("match", ())
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        if not _is_matching_pattern(pattern):
            raise ConfigError(f"Illegal client matching pattern: {pattern}")


def _is_matching_pattern(pattern: str) -> bool:
    from broker_sim.regex.java import JavaRegexError, compile_java  # noqa: PLC0415 - only where clients push metrics

    # Like Java's split, without trailing empty parts.
    parts = pattern.rstrip("=").split("=")
    if len(parts) != len(("name", "value")) or parts[0].strip() not in _MATCHED:
        return False
    try:
        compile_java(parts[1].strip())
    except JavaRegexError:
        return False
    return True
