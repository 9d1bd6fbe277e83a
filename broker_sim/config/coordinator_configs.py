"""Configurations of groups of all kinds, of transactions, and of their coordinators.

Mirrors `GroupCoordinatorConfig`, `ShareGroupConfig`, `ShareCoordinatorConfig`, `TransactionLogConfig` and
`TransactionStateManagerConfig`, with the defaults of Kafka.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

from broker_sim.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    MAX_INT,
    NOT_EMPTY,
    SHORT,
    STRING,
    Between,
    Configs,
    ConfigType,
    ListOf,
    OneOf,
    at_least,
    declare,
)
from broker_sim.errors import ConfigError

HEARTBEAT_AND_SESSION: Final = (
    ("min_heartbeat_interval_ms", "heartbeat_interval_ms", "max_heartbeat_interval_ms"),
    ("min_session_timeout_ms", "session_timeout_ms", "max_session_timeout_ms"),
    ("min_assignment_interval_ms", "assignment_interval_ms", "max_assignment_interval_ms"),
)
"""Configurations of every kind of group, without its prefix, in rows for `check_limits`."""


def check_limits(config: Any, prefix: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Raise ConfigError if a configuration is above the next one of its row; `prefix` precedes each name."""
    for row in rows:
        names = [prefix + name for name in row]
        for low, high in pairwise(names):
            if getattr(config, low) > getattr(config, high):
                raise _unfit(config, low, "must be at most", high)


def check_heartbeat_interval(config: Any, prefix: str) -> None:
    """Raise ConfigError if the heartbeat interval is not shorter than the session timeout."""
    heartbeat, session = f"{prefix}heartbeat_interval_ms", f"{prefix}session_timeout_ms"
    if getattr(config, heartbeat) >= getattr(config, session):
        raise _unfit(config, heartbeat, "must be less than", session)


def _unfit(config: Any, name: str, relation: str, other: str) -> ConfigError:
    left, right = (f"{n.replace('_', '.')}={getattr(config, n)}" for n in (name, other))
    return ConfigError(f"{left} {relation} {right}")


def check_consumer_configs(config: Any) -> None:
    """Raise ConfigError if these configurations of a broker contradict each other; mirrors `validate`."""
    check_limits(config, "group_consumer_", HEARTBEAT_AND_SESSION)
    check_heartbeat_interval(config, "group_consumer_")
    if "classic" not in config.group_coordinator_rebalance_protocols:
        raise ConfigError("Disabling the 'classic' protocol is not supported.")
    assignor_names("group.consumer.assignors", config.group_consumer_assignors)


SHARE_ASSIGNORS: Final = "group.share.assignors"
STREAMS_ASSIGNORS: Final = "group.streams.assignors"
_ASSIGNOR_CLASSES: Final = {
    "group.consumer.assignors": {
        "uniform": "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "range": "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
    },
    SHARE_ASSIGNORS: {"simple": "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"},
    STREAMS_ASSIGNORS: {"sticky": "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"},
}
"""Kafka's own assignors by configuration: the class by its short name."""


def assignor_names(key: str, configured: Iterable[str]) -> tuple[str, ...]:
    """Return the short names of assignors that are configured by name or class. Raises ConfigError as Kafka."""
    classes = _ASSIGNOR_CLASSES[key]
    by_class = {name: short for short, name in classes.items()}
    names: list[str] = []
    for value in dict.fromkeys(configured):
        name = by_class.get(value, value)
        if name not in classes:
            raise ConfigError(f"Invalid value {value} for configuration {key}: Class cannot be found")
        if name in names:
            raise ConfigError(
                f"Invalid value {value} for configuration {key}: Assignor name '{name}' is already registered by"
                " another configured assignor. Assignor names, whether built-in or custom, must be unique"
            )
        names.append(name)
    return tuple(names)


def streams_assignors(text: str) -> tuple[str, ...]:
    """Return the short names of the assignors of streams groups in a list of names or classes. Raises ConfigError."""
    return assignor_names(STREAMS_ASSIGNORS, (part.strip() for part in text.split(",")))


class GroupCoordinatorConfigs(Configs):
    """Consumer groups and their offsets."""

    group_coordinator_rebalance_protocols: tuple[str, ...] = declare(
        LIST,
        ("classic", "consumer", "streams"),
        "Group protocols that the broker offers.",
        ListOf(("consumer", "classic", "share", "streams"), may_be_empty=False),
    )
    group_min_session_timeout_ms: int = declare(
        INT, 6_000, "Shortest session timeout that a member of a classic group may request."
    )
    group_max_session_timeout_ms: int = declare(
        INT, 1_800_000, "Longest session timeout that a member of a classic group may request."
    )
    group_initial_rebalance_delay_ms: int = declare(
        INT, 3_000, "How long an empty group waits for more members before its first rebalance."
    )
    group_max_size: int = declare(INT, MAX_INT, "Maximum number of members of a classic group.", at_least(1))
    group_consumer_session_timeout_ms: int = declare(
        INT, 45_000, "Session timeout of the consumer protocol.", at_least(1)
    )
    group_consumer_min_session_timeout_ms: int = declare(
        INT, 45_000, "Shortest session timeout of the consumer protocol.", at_least(1)
    )
    group_consumer_max_session_timeout_ms: int = declare(
        INT, 60_000, "Longest session timeout of the consumer protocol.", at_least(1)
    )
    group_consumer_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Heartbeat interval of the consumer protocol.", at_least(1)
    )
    group_consumer_min_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Shortest heartbeat interval of the consumer protocol.", at_least(1)
    )
    group_consumer_max_heartbeat_interval_ms: int = declare(
        INT, 15_000, "Longest heartbeat interval of the consumer protocol.", at_least(1)
    )
    group_consumer_max_size: int = declare(
        INT, MAX_INT, "Maximum number of members of a group of the consumer protocol.", at_least(1)
    )
    group_consumer_assignors: tuple[str, ...] = declare(
        LIST, ("uniform", "range"), "Server-side assignors; the first is the default.", NOT_EMPTY
    )
    group_consumer_migration_policy: str = declare(
        STRING,
        "bidirectional",
        "Direction in which a group may change between the classic and the consumer protocol.",
        OneOf(("disabled", "downgrade", "upgrade", "bidirectional")),
    )
    group_consumer_assignment_interval_ms: int = declare(
        INT,
        1_000,
        "Shortest time between two assignments of a group.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
        since="4.3",
    )
    group_consumer_min_assignment_interval_ms: int = declare(
        INT, 0, "Lowest assignment interval of a group.", at_least(0), since="4.3"
    )
    group_consumer_max_assignment_interval_ms: int = declare(
        INT, 15_000, "Highest assignment interval of a group.", at_least(0), since="4.3"
    )
    group_consumer_regex_refresh_interval_ms: int = declare(
        INT,
        600_000,
        "Interval at which the regular expressions of a group are matched again.",
        at_least(10_000),
        internal=True,
        since="4.1",
    )
    offset_metadata_max_bytes: int = declare(
        INT, 4_096, "Maximum size of the metadata of a committed offset, in bytes."
    )
    offsets_commit_timeout_ms: int = declare(
        INT, 5_000, "How long a commit may wait for the replicas of the offsets topic.", at_least(1)
    )
    offsets_retention_minutes: int = declare(
        INT, 10_080, "How long the offsets of an empty group are kept.", at_least(1)
    )
    offsets_retention_check_interval_ms: int = declare(
        LONG, 600_000, "Interval of the check for expired offsets.", at_least(1)
    )
    offsets_topic_num_partitions: int = declare(INT, 50, "Number of partitions of the offsets topic.", at_least(1))
    offsets_topic_replication_factor: int = declare(SHORT, 3, "Replication factor of the offsets topic.", at_least(1))
    offsets_topic_segment_bytes: int = declare(INT, 104_857_600, "segment.bytes of the offsets topic.", at_least(1))
    offsets_topic_compression_codec: int = declare(
        INT, 0, "Compression of the offsets topic by its code; 0 is none.", Between(0, 4)
    )
    offsets_load_buffer_size: int = declare(INT, 5_242_880, "Bytes read at once when offsets are loaded.", at_least(1))


class TransactionConfigs(Configs):
    """Transactions and idempotent producers."""

    transactional_id_expiration_ms: int = declare(
        INT, 604_800_000, "How long an idle transactional id is remembered.", at_least(1)
    )
    transaction_max_timeout_ms: int = declare(
        INT, 900_000, "Longest transaction timeout that a producer may request.", at_least(1)
    )
    transaction_state_log_min_isr: int = declare(INT, 2, "min.insync.replicas of the transaction topic.", at_least(1))
    transaction_state_log_replication_factor: int = declare(
        SHORT, 3, "Replication factor of the transaction topic.", at_least(1)
    )
    transaction_state_log_num_partitions: int = declare(
        INT, 50, "Number of partitions of the transaction topic.", at_least(1)
    )
    transaction_state_log_segment_bytes: int = declare(
        INT, 104_857_600, "segment.bytes of the transaction topic.", at_least(1)
    )
    transaction_state_log_load_buffer_size: int = declare(
        INT, 5_242_880, "Bytes read at once when transactions are loaded.", at_least(1)
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = declare(
        INT, 10_000, "Interval of the check for transactions that timed out.", at_least(1)
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = declare(
        INT, 3_600_000, "Interval of the removal of expired transactional ids.", at_least(1)
    )
    transaction_partition_verification_enable: bool = declare(
        BOOLEAN, True, "Whether the first write of a transaction to a partition is verified.", update_mode=CLUSTER_WIDE
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = declare(
        INT, 100, "Longest time for retries of adding a partition while another transaction is ending.", at_least(0)
    )
    add_partitions_to_txn_retry_backoff_ms: int = declare(
        INT, 20, "Backoff between two retries of adding a partition to a transaction.", at_least(1)
    )
    transaction_two_phase_commit_enable: bool = declare(
        BOOLEAN, False, "Whether transactions without a timeout are allowed (KIP-939).", since="4.1"
    )
    producer_id_expiration_ms: int = declare(
        INT, 86_400_000, "How long the state of an idle producer id is kept.", at_least(1), update_mode=CLUSTER_WIDE
    )
    producer_id_expiration_check_interval_ms: int = declare(
        INT, 600_000, "Interval of the removal of expired producer ids.", at_least(1), internal=True
    )


_ORDERED: Final = (
    *HEARTBEAT_AND_SESSION,
    ("min_delivery_count_limit", "delivery_count_limit", "max_delivery_count_limit"),
    ("min_record_lock_duration_ms", "record_lock_duration_ms", "max_record_lock_duration_ms"),
    ("min_partition_max_record_locks", "partition_max_record_locks", "max_partition_max_record_locks"),
    ("max_size", "max_share_sessions"),
)
"""Rows of names without `group_share_`; none may be above the next one of its row."""


DEFAULT_STATE_PERSISTER: Final = "org.apache.kafka.server.share.persister.DefaultStatePersister"
PERSISTERS: Final = ("", DEFAULT_STATE_PERSISTER, "org.apache.kafka.server.share.persister.NoOpStatePersister")
DEFAULT_DEAD_LETTERS: Final = "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager"
DEAD_LETTER_MANAGERS: Final = ("", DEFAULT_DEAD_LETTERS, "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager")


class ShareGroupConfigs(Configs):
    """Members of share groups, and how records are delivered to them."""

    group_share_persister_class_name: str = declare(
        STRING,
        DEFAULT_STATE_PERSISTER,
        "Kafka class that stores the state of share partitions; an empty name or NoOpStatePersister stores none.",
        internal=True,
    )
    group_share_dlq_manager_class_name: str = declare(
        STRING,
        DEFAULT_DEAD_LETTERS,
        "Kafka class that writes dead letters of share groups; an empty name or the NoOp class writes none.",
        internal=True,
        since="4.4",
    )

    group_share_session_timeout_ms: int = declare(
        INT, 45_000, "Session timeout of members of share groups.", at_least(1)
    )
    group_share_min_session_timeout_ms: int = declare(
        INT, 45_000, "Shortest session timeout of members of share groups.", at_least(1)
    )
    group_share_max_session_timeout_ms: int = declare(
        INT, 60_000, "Longest session timeout of members of share groups.", at_least(1)
    )
    group_share_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Heartbeat interval of members of share groups.", at_least(1)
    )
    group_share_min_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Shortest heartbeat interval of members of share groups.", at_least(1)
    )
    group_share_max_heartbeat_interval_ms: int = declare(
        INT, 15_000, "Longest heartbeat interval of members of share groups.", at_least(1)
    )
    group_share_max_size: int = declare(INT, 200, "Maximum number of members of a share group.", Between(1, 1_000))
    group_share_assignment_interval_ms: int = declare(
        INT,
        1_000,
        "Shortest time between two assignments of a share group.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
        since="4.3",
    )
    group_share_min_assignment_interval_ms: int = declare(
        INT, 0, "Lowest assignment interval of a share group.", at_least(0), since="4.3"
    )
    group_share_max_assignment_interval_ms: int = declare(
        INT, 15_000, "Highest assignment interval of a share group.", at_least(0), since="4.3"
    )
    group_share_initialize_retry_interval_ms: int = declare(
        INT,
        30_000,
        "Interval of attempts to initialize the state of a share partition.",
        at_least(1),
        internal=True,
        since="4.2",
    )
    group_share_delivery_count_limit: int = declare(
        INT, 5, "Maximum number of deliveries of a record to a share group.", Between(2, 10)
    )
    group_share_min_delivery_count_limit: int = declare(
        INT, 2, "Lowest limit of deliveries of a share group.", Between(2, 5), since="4.3"
    )
    group_share_max_delivery_count_limit: int = declare(
        INT, 10, "Highest limit of deliveries of a share group.", Between(5, 25), since="4.3"
    )
    group_share_record_lock_duration_ms: int = declare(
        INT, 30_000, "How long a record is acquired for a member.", Between(1_000, 3_600_000)
    )
    group_share_min_record_lock_duration_ms: int = declare(
        INT, 15_000, "Shortest time that a record is acquired for.", Between(1_000, 30_000)
    )
    group_share_max_record_lock_duration_ms: int = declare(
        INT, 60_000, "Longest time that a record is acquired for.", Between(30_000, 3_600_000)
    )
    group_share_partition_max_record_locks: int = declare(
        INT, 2_000, "Maximum number of records in flight of a share partition.", Between(100, 10_000)
    )
    group_share_min_partition_max_record_locks: int = declare(
        INT, 100, "Lowest limit of records in flight of a share group.", Between(100, 2_000), since="4.3"
    )
    group_share_max_partition_max_record_locks: int = declare(
        INT, 4_000, "Highest limit of records in flight of a share group.", Between(2_000, 10_000), since="4.3"
    )
    group_share_max_share_sessions: int = declare(
        INT, 2_000, "Maximum number of share sessions of a broker.", at_least(1), since="4.1"
    )
    errors_deadletterqueue_auto_create_topics_enable: bool = declare(
        BOOLEAN,
        False,
        "Whether a broker creates the missing dead-letter topic of a share group (KIP-1191).",
        update_mode=CLUSTER_WIDE,
        since="4.4",
    )
    errors_deadletterqueue_topic_name_prefix: str = declare(
        STRING,
        "dlq.",
        "Prefix of the names of share groups' dead-letter topics; empty allows any name.",
        update_mode=CLUSTER_WIDE,
        since="4.4",
    )
    share_fetch_purgatory_purge_interval_requests: int = declare(
        INT, 1_000, "Completed share fetches in watch lists above which the purgatory is purged."
    )


class ShareCoordinatorConfigs(Configs):
    """The share coordinator and its topic, `__share_group_state`."""

    share_coordinator_state_topic_num_partitions: int = declare(
        INT, 50, "Number of partitions of the share groups' state topic.", at_least(1)
    )
    share_coordinator_state_topic_replication_factor: int = declare(
        SHORT, 3, "Replication factor of the share groups' state topic.", at_least(1)
    )
    share_coordinator_state_topic_min_isr: int = declare(
        SHORT, 2, "min.insync.replicas of the share groups' state topic.", at_least(1)
    )
    share_coordinator_state_topic_segment_bytes: int = declare(
        INT, 104_857_600, "segment.bytes of the share groups' state topic.", at_least(1)
    )
    share_coordinator_state_topic_compression_codec: int = declare(
        INT, 0, "Compression of the share groups' state topic by its code; 0 is none."
    )
    share_coordinator_state_topic_prune_interval_ms: int = declare(
        INT, 300_000, "Interval of the deletion of records that newer ones have replaced.", at_least(1), internal=True
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = declare(
        INT,
        300_000,
        "Time after which a snapshot of an idle share partition is written.",
        at_least(1),
        internal=True,
        since="4.1",
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = declare(
        INT, 500, "Number of updates of a share partition between two snapshots.", Between(0, 500)
    )
    share_coordinator_write_timeout_ms: int = declare(
        INT, 5_000, "How long a write may wait for the replicas of the state topic.", at_least(1)
    )
    share_coordinator_load_buffer_size: int = declare(
        INT, 5_242_880, "Bytes read at once when share partitions are loaded.", at_least(1)
    )


def check_share_configs(config: Any) -> None:
    """Raise ConfigError if these configurations of a broker contradict each other; mirrors `validate`."""
    check_limits(config, "group_share_", _ORDERED)
    assignors = {part.strip() for part in config.others.get(SHARE_ASSIGNORS, "simple").split(",")}
    for assignor in assignors:
        assignor_names(SHARE_ASSIGNORS, [assignor])
    if len(assignors) > 1:
        raise ConfigError(f"{SHARE_ASSIGNORS} must contain exactly one assignor, but found {len(assignors)}")
    check_heartbeat_interval(config, "group_share_")
    for name, value, classes, what in (
        ("persister", config.group_share_persister_class_name, PERSISTERS, "store no state"),
        ("dlq.manager", config.group_share_dlq_manager_class_name, DEAD_LETTER_MANAGERS, "write no dead letters"),
    ):
        if value not in classes:
            raise ConfigError(
                f"group.share.{name}.class.name={value!r} must be one of Kafka's, or"
                f" empty to {what}: {', '.join(filter(None, classes))}"
            )


_PREFIX: Final = "group_streams_"


class StreamsGroupConfigs(Configs):
    """Members of streams groups, and how tasks are assigned to them."""

    group_streams_session_timeout_ms: int = declare(
        INT, 45_000, "Session timeout of members of streams groups.", at_least(1), since="4.1"
    )
    group_streams_min_session_timeout_ms: int = declare(
        INT, 45_000, "Shortest session timeout of members of streams groups.", at_least(1), since="4.1"
    )
    group_streams_max_session_timeout_ms: int = declare(
        INT, 60_000, "Longest session timeout of members of streams groups.", at_least(1), since="4.1"
    )
    group_streams_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Heartbeat interval of members of streams groups.", at_least(1), since="4.1"
    )
    group_streams_min_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Shortest heartbeat interval of members of streams groups.", at_least(1), since="4.1"
    )
    group_streams_max_heartbeat_interval_ms: int = declare(
        INT, 15_000, "Longest heartbeat interval of members of streams groups.", at_least(1), since="4.1"
    )
    group_streams_max_size: int = declare(
        INT, MAX_INT, "Maximum number of members of a streams group.", at_least(1), since="4.1"
    )
    group_streams_num_standby_replicas: int = declare(
        INT, 0, "Number of standby tasks for each stateful task.", at_least(0), since="4.1"
    )
    group_streams_max_standby_replicas: int = declare(
        INT, 2, "Highest number of standby tasks that a streams group may set.", at_least(0), since="4.1"
    )
    group_streams_initial_rebalance_delay_ms: int = declare(
        INT,
        3_000,
        "How long a new streams group waits for more members before it assigns tasks.",
        at_least(0),
        since="4.2",
    )
    group_streams_assignment_interval_ms: int = declare(
        INT,
        1_000,
        "Shortest time between two assignments of a streams group.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
        since="4.3",
    )
    group_streams_min_assignment_interval_ms: int = declare(
        INT, 0, "Lowest assignment interval of a streams group.", at_least(0), since="4.3"
    )
    group_streams_max_assignment_interval_ms: int = declare(
        INT, 15_000, "Highest assignment interval of a streams group.", at_least(0), since="4.3"
    )
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = declare(
        LIST,
        (),
        "Client tags that members of streams groups must have; members without them get a status.",
        since="4.4",
    )
    group_streams_task_offset_interval_ms: int = declare(
        INT,
        60_000,
        "Interval at which members of streams groups report their task offsets.",
        at_least(1),
        internal=True,
        since="4.4",
    )
    group_streams_min_task_offset_interval_ms: int = declare(
        INT,
        15_000,
        "Shortest interval at which members of streams groups report their task offsets.",
        at_least(1),
        internal=True,
        since="4.4",
    )
    group_streams_num_warmup_replicas: int = declare(
        INT,
        2,
        "Maximum number of warm-up tasks of a streams group. Kafka 4.4.0 assigns none; 0 disables them.",
        at_least(0),
        internal=True,
        since="4.4",
    )
    group_streams_max_warmup_replicas: int = declare(
        INT,
        20,
        "Highest number of warm-up tasks that a streams group may set.",
        at_least(0),
        internal=True,
        since="4.4",
    )
    group_streams_acceptable_recovery_lag: int = declare(
        LONG,
        10_000,
        "Maximum lag in offsets at which a member of a streams group counts as caught up on a task.",
        at_least(0),
        internal=True,
        since="4.4",
    )
    group_streams_topology_description_plugin_class: str | None = declare(
        ConfigType.CLASS,
        None,
        "With any name, the broker stores the topology descriptions that members push, in memory (KIP-1331).",
        since="4.4",
    )


def check_streams_configs(config: Any) -> None:
    """Raise ConfigError if these configurations of a broker contradict each other; mirrors `validate`."""
    check_limits(config, _PREFIX, HEARTBEAT_AND_SESSION)
    check_limits(config, _PREFIX, [("num_standby_replicas", "max_standby_replicas")])
    check_limits(config, _PREFIX, [("min_task_offset_interval_ms", "task_offset_interval_ms")])
    check_limits(config, _PREFIX, [("num_warmup_replicas", "max_warmup_replicas")])
    check_heartbeat_interval(config, _PREFIX)
    streams_assignors(config.others.get(STREAMS_ASSIGNORS, "sticky"))
    check_tags(_TAGS, config.originals.get(_TAGS, ""))


_TAGS: Final = "group.streams.rack.aware.assignment.tags"


def check_tags(key: str, text: str) -> None:
    """Raise ConfigError for a list of tags with one that comes twice."""
    tags = [tag.strip() for tag in text.split(",")]
    if len(set(tags)) < len(tags):
        raise ConfigError(f"{key} must not contain duplicate tag keys.")
