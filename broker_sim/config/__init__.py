"""Kafka's configurations: names, types, units, defaults, and what values are allowed."""

from broker_sim.config.broker_config import BROKER_CONFIGS, BrokerConfig
from broker_sim.config.definition import ConfigDef, ConfigType, ConfigValue, UpdateMode, to_text
from broker_sim.config.describe import BrokerConfigs, ConfigEntry, ConfigSource, ConfigSynonym
from broker_sim.config.topic_config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    TopicConfig,
    effective_topic_config,
    topic_defaults,
)

__all__ = [
    "BROKER_CONFIGS",
    "TOPIC_CONFIGS",
    "TOPIC_CONFIG_SYNONYMS",
    "BrokerConfig",
    "BrokerConfigs",
    "ConfigDef",
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConfigValue",
    "TopicConfig",
    "UpdateMode",
    "effective_topic_config",
    "to_text",
    "topic_defaults",
]
