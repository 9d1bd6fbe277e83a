"""Kafka's configurations: names, types, units, defaults, and what values are allowed."""

from broker_sim.config.broker_config import BROKER_CONFIGS, BrokerConfig
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
from broker_sim.config.topic_config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    TopicConfig,
    effective_topic_config,
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
    "effective_topic_config",
    "to_text",
    "to_texts",
    "topic_defaults",
]
