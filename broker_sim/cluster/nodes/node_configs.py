"""The configurations of a cluster's brokers: each with its id, and the warnings about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    JAAS_CONFIG,
    SERVER_HANDLER,
    SIGNED_TOKEN_HANDLERS,
    without_listener,
)
from broker_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.runtime.event_log import EventLogger

NO_NODE_ID = -1


def log_doubtful_configs(configs: Iterable[BrokerConfig], log: EventLogger) -> None:
    """Log what has no effect, and heartbeats that are too rare."""
    configs = list(configs)
    _log_configs_without_effect(configs, log)
    _log_long_heartbeat_intervals(configs, log)


def _log_configs_without_effect(configs: Iterable[BrokerConfig], log: EventLogger) -> None:
    names = {
        name
        for config in configs
        for name, text in config.originals.items()
        if without_listener(name) != SERVER_HANDLER or text not in SIGNED_TOKEN_HANDLERS
    }
    has_effect = BROKER_CONFIGS.keys() - BROKER_WITHOUT_EFFECT.keys()
    without_effect = sorted(
        name
        for name in names - has_effect
        if (own := without_listener(name)) == name or own not in {*has_effect, JAAS_CONFIG}
    )
    if without_effect:
        log.warning("configuration_without_effect", names=without_effect)


def _log_long_heartbeat_intervals(configs: Iterable[BrokerConfig], log: EventLogger) -> None:
    """Log, as Kafka does, that brokers would be fenced by chance."""
    for config in configs:
        heartbeat_ms = config.broker_heartbeat_interval_ms
        session_ms = config.broker_session_timeout_ms
        if heartbeat_ms * 2 > session_ms:
            log.error(
                "heartbeat_interval_too_long",
                interval_ms=heartbeat_ms,
                session_timeout_ms=session_ms,
                remedy="set broker.heartbeat.interval.ms to at most half of"
                " broker.session.timeout.ms, or a live broker may be fenced",
            )
            return


def numbered(configs: Mapping[int, BrokerConfig]) -> dict[int, BrokerConfig]:
    """Return the configurations with their broker's id. Raises ConfigError for another id."""
    result = {}
    for broker_id, config in configs.items():
        if config.node_id not in (NO_NODE_ID, broker_id):
            raise ConfigError(
                f"Invalid value {config.node_id} for configuration node.id: brokers are numbered"
                f" from 1 on, and this one is {broker_id}"
            )
        number = str(broker_id)
        result[broker_id] = config.with_overrides({"node.id": number, "broker.id": number})
    return result
