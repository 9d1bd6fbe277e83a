"""What configurations a resource may have.

Mirrors `ControllerConfigurationValidator`, and of the checks that a broker does in Kafka before it
forwards a request those of `DynamicBrokerConfig.validate`.
"""

from collections.abc import Iterable, Mapping

from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    CHANGE_WITHOUT_EFFECT,
    LISTENERS,
    METRIC_REPORTERS,
    OVERRIDES,
    PER_LISTENER,
    THREADS,
    TOPIC_WITHOUT_EFFECT,
    BrokerConfig,
    UpdateMode,
    check_client_metrics_configs,
    check_connection_limits,
    check_group_configs,
    check_listeners,
    check_metric_reporters,
    check_overrides,
    effective_topic_config,
    every_broker_config,
    thread_count_reason,
)
from broker_sim.controller.requests import ConfigResource, ConfigResourceType
from broker_sim.errors import ApiError, ConfigError, ErrorCode
from broker_sim.metadata import MetadataDelta
from broker_sim.runtime.event_log import get_logger

__all__ = ["ConfigurationValidator"]

log = get_logger(__name__)


class ConfigurationValidator:
    """Checks what a resource would have; `static` is the configuration of the controller."""

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self._logged_without_effect: set[str] = set()

    def check(
        self, delta: MetadataDelta, resource: ConfigResource, configs: Mapping[str, str]
    ) -> None:
        """Raise ApiError unless the resource may have exactly these configurations.

        The code is INVALID_REQUEST for brokers and INVALID_CONFIG for all else, but for a
        subscription to client metrics INVALID_REQUEST too where Kafka has it so.
        """
        resource_type = resource.type
        try:
            match resource_type:
                case ConfigResourceType.TOPIC:
                    effective_topic_config(self._static, {}, configs)
                case ConfigResourceType.BROKER:
                    self._check_broker(delta, resource.name, configs)
                case ConfigResourceType.GROUP:
                    check_group_configs(self._static, configs)
                case ConfigResourceType.CLIENT_METRICS:
                    check_client_metrics_configs(configs)
        except ConfigError as error:
            is_broker = resource_type is ConfigResourceType.BROKER
            code = ErrorCode.INVALID_REQUEST if is_broker else ErrorCode.INVALID_CONFIG
            raise ApiError(code, str(error)) from error
        self._log_without_effect(resource_type, configs)

    def _check_broker(self, delta: MetadataDelta, broker: str, configs: Mapping[str, str]) -> None:
        if not configs.get(LISTENERS, "any").strip():  # said even where no listener may be set
            check_listeners("", "", ())
        _check_dynamic(configs, broker)
        config = self._static.with_dynamic(configs)
        present = {**delta.broker_configs.get("", {}), **delta.broker_configs.get(broker, {})}
        if OVERRIDES in configs:
            check_overrides(configs[OVERRIDES])
        check_connection_limits(configs, config.others.get(OVERRIDES, ""))
        if METRIC_REPORTERS in configs:
            check_metric_reporters(configs[METRIC_REPORTERS])
        if LISTENERS in configs:
            check_listeners(
                configs[LISTENERS],
                config.listener_security_protocol_map,
                self._advertised_names(delta, broker),
            )
        self._check_threads(present, configs)

    @staticmethod
    def _advertised_names(delta: MetadataDelta, broker: str) -> list[str]:
        """Return the names of the listeners that clients of the broker are told of."""
        registered = delta.brokers.get(int(broker)) if broker.isdecimal() else None
        return [] if registered is None else [each.listener for each in registered.endpoints]

    def _check_threads(self, present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        """Refuse to double or halve a number of threads at once; mirrors `DynamicThreadPool`."""
        names = wanted.keys() & THREADS
        if not names:
            return
        definitions = every_broker_config()
        now = self._static.with_dynamic(present)
        for name in sorted(names):
            value, current = int(wanted[name]), int(now.text_of(definitions[name]) or 0)
            reason = thread_count_reason(name, value, current)
            if reason:
                raise ConfigError(
                    "Invalid value org.apache.kafka.common.config.ConfigException: "
                    f"{reason} for configuration Invalid dynamic configuration"
                )

    def _log_without_effect(
        self, resource_type: ConfigResourceType, configs: Mapping[str, str]
    ) -> None:
        """Log each configuration that is set and changes nothing, once."""
        match resource_type:
            case ConfigResourceType.TOPIC:
                without_effect = configs.keys() & TOPIC_WITHOUT_EFFECT.keys()
            case ConfigResourceType.BROKER:
                without_effect = configs.keys() - (
                    BROKER_CONFIGS.keys() - BROKER_WITHOUT_EFFECT.keys() - CHANGE_WITHOUT_EFFECT
                )
            case _:
                without_effect = set(configs)
        names = sorted(without_effect - self._logged_without_effect)
        if names:
            self._logged_without_effect.update(names)
            log.warning("configuration_without_effect", names=names)


def _check_dynamic(configs: Mapping[str, str], broker: str) -> None:
    """Raise ConfigError when one cannot be changed at run time, or not for all brokers."""
    unknown = not BROKER_CONFIGS.keys() >= configs.keys()
    definitions = every_broker_config() if unknown else BROKER_CONFIGS
    modes = {name: definitions[name].update_mode for name in configs if name in definitions}
    fixed = [name for name, mode in modes.items() if mode is UpdateMode.READ_ONLY]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: {_listed(fixed)}")
    per_listener = [name for name in modes if name in PER_LISTENER]
    if per_listener:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the"
            f" listener prefix: {_listed(per_listener)}"
        )
    own = [name for name, mode in modes.items() if mode is UpdateMode.PER_BROKER]
    if own and not broker:
        raise ConfigError(
            "Cannot update these configs at default cluster level, broker id must be specified:"
            f" {_listed(own)}"
        )


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
