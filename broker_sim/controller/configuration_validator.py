"""Validation of the configurations of a resource.

Mirrors `ControllerConfigurationValidator`, and the checks of `DynamicBrokerConfig.validate` that a broker performs
in Kafka before it forwards a request.
"""

from collections.abc import Mapping
from typing import Final

from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    CHANGE_WITHOUT_EFFECT,
    CONNECTION_LIMITS,
    DYNAMIC_ERROR,
    GROUP_CONFIGS,
    LISTENERS,
    METRIC_REPORTERS,
    OF_ALL_BROKERS,
    PER_LISTENER,
    PROTOCOL_MAP,
    REPLICATION_QUOTA_CONFIGS,
    RETENTION,
    THREADS,
    TOPIC_CONFIGS,
    TOPIC_WITHOUT_EFFECT,
    BrokerConfig,
    ConfigDef,
    check_client_metrics_configs,
    check_connection_limits,
    check_dynamic,
    check_group_configs,
    check_listeners,
    check_local_retention,
    check_metric_reporters,
    check_release,
    effective_topic_config,
    every_broker_config,
    listener_values,
    of_listeners,
    security_protocols,
    takes_client_metrics,
    thread_count_reason,
    why_without_effect,
    without_listener,
)
from broker_sim.controller.requests import ConfigResource, ConfigResourceType
from broker_sim.errors import ApiError, ConfigError, ErrorCode
from broker_sim.metadata import MetadataDelta
from broker_sim.protocol.release import Release
from broker_sim.runtime.event_log import get_logger

log = get_logger(__name__)

_NO_REPORTER: Final = "no class in metric.reporters takes the metrics of clients"
_NO_DEFINITIONS: Final[tuple[Mapping[str, ConfigDef], str]] = ({}, "")
_DEFINITIONS: Final[Mapping[int, tuple[Mapping[str, ConfigDef], str]]] = {
    ConfigResourceType.TOPIC: (TOPIC_CONFIGS, "topic"),
    ConfigResourceType.GROUP: (GROUP_CONFIGS, "group"),
}
"""Definitions that differ between releases, with their names in messages."""


class ConfigurationValidator:
    """Checks the proposed configurations of a resource, for brokers of that release.

    `static` is the controller's configuration.
    """

    def __init__(self, static: BrokerConfig, release: Release) -> None:
        self._static = static
        self._release = release
        self._logged_without_effect: set[str] = set()

    def check(self, delta: MetadataDelta, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Raise ApiError unless the resource may have exactly these configurations.

        The code is INVALID_REQUEST for brokers, and for some errors of client metrics subscriptions as in
        Kafka; otherwise INVALID_CONFIG.
        """
        resource_type = resource.type
        try:
            definitions, kind = _DEFINITIONS.get(resource_type, _NO_DEFINITIONS)
            check_release(definitions, configs, kind, self._release.is_at_least)
            match resource_type:
                case ConfigResourceType.TOPIC:
                    effective_topic_config(self._static, {}, configs)
                case ConfigResourceType.BROKER:
                    # An older Kafka accepts these for plugins; here they would have an effect.
                    check_release(every_broker_config(), configs, "broker", self._release.is_at_least)
                    self._check_broker(delta, resource.name, configs)
                case ConfigResourceType.GROUP:
                    check_group_configs(self._static, configs, tells_numbers=self._release.is_at_least("4.4"))
                case ConfigResourceType.CLIENT_METRICS:
                    check_client_metrics_configs(configs)
        except ConfigError as error:
            is_broker = resource_type is ConfigResourceType.BROKER
            code = ErrorCode.INVALID_REQUEST if is_broker else ErrorCode.INVALID_CONFIG
            raise ApiError(code, str(error)) from error
        self._log_without_effect(resource_type, configs)

    def _check_broker(self, delta: MetadataDelta, broker: str, configs: Mapping[str, str]) -> None:
        check_dynamic(configs, broker)
        of_all = delta.broker_configs.get("", {}) if broker else {}
        config = self._static.with_dynamic({**of_all, **configs})
        present = {**delta.broker_configs.get("", {}), **delta.broker_configs.get(broker, {})}
        check_connection_limits(configs, self._listeners(delta, broker))
        if broker:
            changed = {name for name, text in configs.items() if present.get(name) != text}
            changed |= delta.broker_configs.get(broker, {}).keys() - configs.keys()
            self._check_fixed_listeners(changed, configs, self._listeners(delta, broker))
        if not configs.keys().isdisjoint(RETENTION):
            check_local_retention(config)
        if METRIC_REPORTERS in configs:
            check_metric_reporters(configs[METRIC_REPORTERS])
        if not configs.keys().isdisjoint({LISTENERS, PROTOCOL_MAP}):
            values = {**self._static.originals, **configs}
            protocols = security_protocols(values, config.listener_security_protocol_map)
            if LISTENERS in values:
                check_listeners(config.listeners, protocols, self._listeners(delta, broker) if broker else ())
        self._check_threads(present, configs)

    def _check_fixed_listeners(self, changed: set[str], configs: Mapping[str, str], listeners: list[str]) -> None:
        """Refuse a change of listeners while one of them has a new configuration that needs a restart.

        Such a configuration is accepted without an effect, as in Kafka.
        """
        if not changed & of_listeners():
            return
        for listener in listeners:
            names = (
                listener_values(configs, listener).items() - listener_values(self._static.originals, listener).items()
            )
            if any(name not in PER_LISTENER and name not in OF_ALL_BROKERS for name, _ in names):
                raise ConfigError(
                    DYNAMIC_ERROR.format(
                        f"Configs cannot be updated dynamically for existing listener ListenerName({listener}),"
                        " restart broker or create a new listener for update"
                    )
                )

    @staticmethod
    def _listeners(delta: MetadataDelta, broker: str) -> list[str]:
        """Return the names of the advertised listeners of the broker, or of all brokers."""
        registered = [each for each in delta.brokers.values() if broker in ("", str(each.broker_id))]
        return list(dict.fromkeys(end.listener for each in registered for end in each.endpoints))

    def _check_threads(self, present: Mapping[str, str], proposed: Mapping[str, str]) -> None:
        """Refuse a thread count above twice or below half the current one; mirrors `DynamicThreadPool`."""
        names = proposed.keys() & THREADS
        if not names:
            return
        definitions = every_broker_config()
        now = self._static.with_dynamic(present)
        for name in sorted(names):
            value, current = int(proposed[name]), int(now.text_of(definitions[name]) or 0)
            reason = thread_count_reason(name, value, current)
            if reason:
                raise ConfigError(DYNAMIC_ERROR.format(reason))

    def _log_without_effect(self, resource_type: ConfigResourceType, configs: Mapping[str, str]) -> None:
        """Log each configuration that is set but has no effect, once."""
        match resource_type:
            case ConfigResourceType.TOPIC:
                without_effect = configs.keys() & TOPIC_WITHOUT_EFFECT.keys()
            case ConfigResourceType.BROKER:
                served = BROKER_CONFIGS.keys() | REPLICATION_QUOTA_CONFIGS.keys()
                effective = served - BROKER_WITHOUT_EFFECT.keys() - CHANGE_WITHOUT_EFFECT
                without_effect = {
                    name
                    for name in configs.keys() - effective
                    if without_listener(name) not in PER_LISTENER | CONNECTION_LIMITS
                }
            case ConfigResourceType.CLIENT_METRICS:
                without_effect = set() if takes_client_metrics(self._static.others) else set(configs)
            case _:
                without_effect = set()
        names = sorted(without_effect - self._logged_without_effect)
        if names:
            self._logged_without_effect.update(names)
            is_of_clients = resource_type is ConfigResourceType.CLIENT_METRICS
            reasons = {_NO_REPORTER if is_of_clients else why_without_effect(name) for name in names}
            log.warning("configuration_without_effect", names=names, reasons=sorted(reasons))
