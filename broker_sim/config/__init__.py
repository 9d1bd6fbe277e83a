"""Kafka's configurations: names, types, units, defaults, and what values are allowed."""

from broker_sim.config.broker_config import BROKER_CONFIGS, BrokerConfig, every_broker_config
from broker_sim.config.definition import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    GivenValue,
    UpdateMode,
    to_text,
    to_texts,
)
from broker_sim.config.describe import BrokerConfigs, ConfigEntry, ConfigSource, ConfigSynonym
from broker_sim.config.describe_others import (
    alter_loggers,
    describe_client_metrics,
    describe_group,
    describe_loggers,
)
from broker_sim.config.listeners import (
    LISTENERS,
    METRIC_REPORTERS,
    OVERRIDES,
    check_connection_limits,
    check_listeners,
    check_metric_reporters,
    check_overrides,
)
from broker_sim.config.other_configs import (
    PER_LISTENER,
    THREADS,
    other_configs,
    thread_count_reason,
    why_without_effect,
)
from broker_sim.config.resource_configs import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    check_client_metrics_configs,
    check_group_configs,
)
from broker_sim.config.server_configs import RACK_AWARE_SELECTOR
from broker_sim.config.topic_config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    TopicConfig,
    effective_topic_config,
    override_topic_config,
    topic_defaults,
)
from broker_sim.config.without_effect import (
    BROKER_WITHOUT_EFFECT,
    CHANGE_WITHOUT_EFFECT,
    TOPIC_WITHOUT_EFFECT,
)

__all__ = [
    "BROKER_CONFIGS",
    "BROKER_WITHOUT_EFFECT",
    "CHANGE_WITHOUT_EFFECT",
    "CLIENT_METRICS_CONFIGS",
    "GROUP_CONFIGS",
    "LISTENERS",
    "METRIC_REPORTERS",
    "OVERRIDES",
    "PER_LISTENER",
    "RACK_AWARE_SELECTOR",
    "THREADS",
    "TOPIC_CONFIGS",
    "TOPIC_CONFIG_SYNONYMS",
    "TOPIC_WITHOUT_EFFECT",
    "BrokerConfig",
    "BrokerConfigs",
    "ConfigDef",
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConfigValue",
    "GivenValue",
    "TopicConfig",
    "UpdateMode",
    "alter_loggers",
    "check_client_metrics_configs",
    "check_connection_limits",
    "check_group_configs",
    "check_listeners",
    "check_metric_reporters",
    "check_overrides",
    "describe_client_metrics",
    "describe_group",
    "describe_loggers",
    "effective_topic_config",
    "every_broker_config",
    "other_configs",
    "override_topic_config",
    "thread_count_reason",
    "to_text",
    "to_texts",
    "topic_defaults",
    "why_without_effect",
]
