"""The configuration of one topic: its own configurations, and the broker's values for the rest.

Mirrors `org.apache.kafka.storage.internals.log.LogConfig` and `ServerTopicConfigSynonyms`.
Deliberate difference: there is no tiered storage; its configurations are those of a broker without it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from broker_sim.config.broker_config import BrokerConfig
from broker_sim.config.definition import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_ARRAY_BYTES,
    MAX_LONG,
    STRING,
    Between,
    BetweenOrDefault,
    ConfigDef,
    Configs,
    ConfigValue,
    ReplicaList,
    at_least,
    declare,
    parse_all,
)
from broker_sim.config.log_configs import CLEANUP_POLICIES, TIMESTAMP_TYPES
from broker_sim.config.other_configs import other_configs
from broker_sim.config.server_configs import COMPRESSION_TYPES
from broker_sim.errors import ConfigError


class TopicConfig(Configs):
    """Every configuration of a topic as an attribute: Kafka's name with `_` for `.`."""

    segment_bytes: int = declare(INT, 1_073_741_824, "Size in bytes at which a segment is rolled.", at_least(1_048_576))
    segment_ms: int = declare(LONG, 604_800_000, "Age at which a segment is rolled.", at_least(1))
    segment_jitter_ms: int = declare(LONG, 0, "Largest random time by which a segment is rolled earlier.", at_least(0))
    segment_index_bytes: int = declare(INT, 10_485_760, "Largest size of an offset index.", at_least(4))
    flush_messages: int = declare(LONG, MAX_LONG, "Records after which the log is flushed to disk.", at_least(1))
    flush_ms: int = declare(LONG, MAX_LONG, "Time after which the log is flushed to disk.", at_least(0))
    retention_bytes: int = declare(
        LONG, -1, "Size of a partition above which old segments are deleted; -1 sets no limit."
    )
    retention_ms: int = declare(LONG, 604_800_000, "How long records are kept; -1 sets no limit.", at_least(-1))
    max_message_bytes: int = declare(INT, 1_048_588, "Maximum size of a record batch in bytes.", at_least(0))
    max_decompressed_message_bytes: int = declare(
        INT,
        MAX_ARRAY_BYTES,
        "Maximum size of a record in a compressed batch, in bytes.",
        Between(1, MAX_ARRAY_BYTES),
        since="4.4",
    )
    index_interval_bytes: int = declare(INT, 4_096, "Bytes between two entries of the offset index.", at_least(0))
    delete_retention_ms: int = declare(LONG, 86_400_000, "How long tombstones are kept.", at_least(0))
    min_compaction_lag_ms: int = declare(LONG, 0, "Time before which a record is not compacted.", at_least(0))
    max_compaction_lag_ms: int = declare(
        LONG, MAX_LONG, "Time after which a record may be compacted whatever the dirty ratio.", at_least(1)
    )
    file_delete_delay_ms: int = declare(LONG, 60_000, "How long the files of a deleted segment are kept.", at_least(0))
    min_cleanable_dirty_ratio: float = declare(
        DOUBLE, 0.5, "Share of uncleaned bytes at which the log is cleaned.", Between(0, 1)
    )
    cleanup_policy: tuple[str, ...] = declare(
        LIST, ("delete",), "What is done with old records: delete, compact, or both.", CLEANUP_POLICIES
    )
    unclean_leader_election_enable: bool = declare(
        BOOLEAN, False, "Whether a replica outside the ISR may become leader; records may be lost."
    )
    min_insync_replicas: int = declare(
        INT, 1, "Minimum number of in-sync replicas for a produce with acks=all.", at_least(1)
    )
    compression_type: str = declare(
        STRING,
        "producer",
        "Final compression of the records; `producer` keeps what the producer chose.",
        COMPRESSION_TYPES,
    )
    compression_gzip_level: int = declare(
        INT, -1, "Level of gzip; -1 is the default of gzip.", BetweenOrDefault(1, 9, -1)
    )
    compression_lz4_level: int = declare(INT, 9, "Level of lz4.", Between(1, 17))
    compression_zstd_level: int = declare(INT, 3, "Level of zstd.", Between(-131_072, 22))
    preallocate: bool = declare(BOOLEAN, False, "Whether a segment's file is allocated at its full size.")
    message_timestamp_type: str = declare(
        STRING,
        "CreateTime",
        "Whether a record's timestamp is its producer's or the time of its append.",
        TIMESTAMP_TYPES,
    )
    message_timestamp_before_max_ms: int = declare(
        LONG, MAX_LONG, "How far a record's timestamp may be in the past.", at_least(0)
    )
    message_timestamp_after_max_ms: int = declare(
        LONG, 3_600_000, "How far a record's timestamp may be in the future.", at_least(0)
    )
    leader_replication_throttled_replicas: tuple[str, ...] = declare(
        LIST, (), "Leaders, `PARTITION:BROKER` or `*`, limited by leader.replication.throttled.rate.", ReplicaList()
    )
    follower_replication_throttled_replicas: tuple[str, ...] = declare(
        LIST,
        (),
        "Followers, `PARTITION:BROKER` or `*`, limited by follower.replication.throttled.rate.",
        ReplicaList(),
    )
    remote_storage_enable: bool = declare(
        BOOLEAN, False, "Whether the topic has tiered storage; it cannot be set to true."
    )
    local_retention_ms: int = declare(
        LONG, -2, "How long segments are kept on local disks; -2 stands for retention.ms.", at_least(-2)
    )
    local_retention_bytes: int = declare(
        LONG, -2, "Size of a partition on local disks; -2 stands for retention.bytes.", at_least(-2)
    )
    remote_copy_lag_ms: int = declare(
        LONG, 0, "Age at which a segment is copied to tiered storage.", at_least(-1), since="4.4"
    )
    remote_copy_lag_bytes: int = declare(
        LONG, -1, "Size of newer data at which a segment is copied to tiered storage.", at_least(-1), since="4.4"
    )
    remote_log_copy_disable: bool = declare(BOOLEAN, False, "Whether tiered data is read only.")
    remote_log_delete_on_disable: bool = declare(
        BOOLEAN, False, "Whether tiered data is deleted when tiered storage is disabled."
    )
    errors_deadletterqueue_group_enable: bool = declare(
        BOOLEAN, False, "Whether share groups may write dead letters to the topic (KIP-1191).", since="4.4"
    )
    internal_segment_bytes: int | None = declare(
        INT, None, "segment.bytes for tests, without its lower limit.", internal=True
    )

    @property
    def segment_size_bytes(self) -> int:
        """Size in bytes at which a segment is rolled: internal.segment.bytes if it is set."""
        size = self.internal_segment_bytes
        return self.segment_bytes if size is None else size

    @property
    def max_segment_ms(self) -> int:
        """Age in ms at which a segment is rolled, at most `max.compaction.lag.ms` for a compacted topic."""
        if self.is_compacted:
            return min(max(self.max_compaction_lag_ms, 1), self.segment_ms)
        return self.segment_ms

    @property
    def is_compacted(self) -> bool:
        """Whether the cleaner compacts the topic."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted_by_age(self) -> bool:
        """Whether old segments are deleted, by age and by size."""
        return "delete" in self.cleanup_policy


TOPIC_CONFIGS: Final[Mapping[str, ConfigDef]] = MappingProxyType(TopicConfig.definitions)
"""All topic configurations by Kafka's name."""

TOPIC_CONFIG_SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "segment.bytes": "log.segment.bytes",
        "segment.ms": "log.roll.ms",
        "segment.jitter.ms": "log.roll.jitter.ms",
        "segment.index.bytes": "log.index.size.max.bytes",
        "flush.messages": "log.flush.interval.messages",
        "flush.ms": "log.flush.interval.ms",
        "retention.bytes": "log.retention.bytes",
        "retention.ms": "log.retention.ms",
        "max.message.bytes": "message.max.bytes",
        "max.decompressed.message.bytes": "max.decompressed.message.bytes",
        "index.interval.bytes": "log.index.interval.bytes",
        "delete.retention.ms": "log.cleaner.delete.retention.ms",
        "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
        "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
        "file.delete.delay.ms": "log.segment.delete.delay.ms",
        "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
        "cleanup.policy": "log.cleanup.policy",
        "unclean.leader.election.enable": "unclean.leader.election.enable",
        "min.insync.replicas": "min.insync.replicas",
        "compression.type": "compression.type",
        "compression.gzip.level": "compression.gzip.level",
        "compression.lz4.level": "compression.lz4.level",
        "compression.zstd.level": "compression.zstd.level",
        "preallocate": "log.preallocate",
        "message.timestamp.type": "log.message.timestamp.type",
        "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
        "local.retention.ms": "log.local.retention.ms",
        "local.retention.bytes": "log.local.retention.bytes",
        "remote.copy.lag.ms": "log.remote.copy.lag.ms",
        "remote.copy.lag.bytes": "log.remote.copy.lag.bytes",
    }
)
"""The broker configuration that is the default of each topic configuration."""

_COMPUTED: Final[Mapping[str, Callable[[BrokerConfig], ConfigValue]]] = {
    "segment.ms": lambda broker: broker.log_roll_time_ms,
    "segment.jitter.ms": lambda broker: broker.log_roll_time_jitter_ms,
    "retention.ms": lambda broker: broker.log_retention_time_ms,
    "flush.ms": lambda broker: broker.log_flush_time_ms,
}


def topic_defaults(broker: BrokerConfig) -> TopicConfig:
    """Return the configuration of a topic without configurations of its own.

    Mirrors `KafkaConfig.extractLogConfigMap`.
    """
    values: dict[str, ConfigValue] = {}
    others = other_configs()
    for name, synonym in TOPIC_CONFIG_SYNONYMS.items():
        definition = TOPIC_CONFIGS[name]
        if name in _COMPUTED:
            value = _COMPUTED[name](broker)
        elif synonym in others:
            value = definition.parse(str(broker.text_of(others[synonym])))
        else:
            value = getattr(broker, synonym.replace(".", "_"))
        values[definition.attribute] = value
    return TopicConfig(**values)


def effective_topic_config(
    broker: BrokerConfig, dynamic_broker_configs: Mapping[str, str], topic_configs: Mapping[str, str]
) -> TopicConfig:
    """Return the topic's configuration.

    A value comes from the topic, otherwise from the broker's dynamic configurations, its static ones, or the
    default. `dynamic_broker_configs` are those of the cluster, overridden by those of the broker.
    Raises ConfigError with a one-line message for an unknown name or an invalid value.
    """
    return override_topic_config(topic_defaults(broker.with_dynamic(dynamic_broker_configs)), topic_configs)


def override_topic_config(defaults: TopicConfig, topic_configs: Mapping[str, str]) -> TopicConfig:
    """Return the defaults overridden by the topic's configurations. Raises ConfigError as `effective_topic_config`."""
    if not topic_configs:
        return defaults
    parsed = parse_all(TOPIC_CONFIGS, topic_configs, "topic")
    config = defaults.replaced(**parsed)
    if config.remote_storage_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms})"
            f" > max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
    return config
