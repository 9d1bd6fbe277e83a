"""Configurations of the group and the transaction coordinator.

Mirrors `GroupCoordinatorConfig`, `TransactionLogConfig` and `TransactionStateManagerConfig`,
with the defaults of Kafka 4.3.
"""

from dataclasses import dataclass

from broker_sim.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    MAX_INT,
    SHORT,
    STRING,
    Between,
    ListOf,
    OneOf,
    at_least,
    declare,
)


@dataclass(frozen=True, kw_only=True)
class GroupCoordinatorConfigs:
    """Consumer groups and their offsets."""

    group_coordinator_rebalance_protocols: tuple[str, ...] = declare(
        LIST,
        ("classic", "consumer", "streams"),
        "Group protocols that the broker offers.",
        ListOf(("consumer", "classic", "share", "streams")),
    )
    group_min_session_timeout_ms: int = declare(
        INT, 6_000, "Shortest session timeout that a member of a classic group may ask for."
    )
    group_max_session_timeout_ms: int = declare(
        INT, 1_800_000, "Longest session timeout that a member of a classic group may ask for."
    )
    group_initial_rebalance_delay_ms: int = declare(
        INT, 3_000, "How long an empty group waits for more members before its first rebalance."
    )
    group_max_size: int = declare(INT, MAX_INT, "Most members of a classic group.", at_least(1))
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
        INT, MAX_INT, "Most members of a group of the consumer protocol.", at_least(1)
    )
    group_consumer_assignors: tuple[str, ...] = declare(
        LIST, ("uniform", "range"), "Server-side assignors; the first is the default."
    )
    group_consumer_migration_policy: str = declare(
        STRING,
        "bidirectional",
        "Which way a group may change between the classic and the consumer protocol.",
        OneOf(("disabled", "downgrade", "upgrade", "bidirectional")),
    )
    group_consumer_assignment_interval_ms: int = declare(
        INT, 1_000, "Shortest time between two assignments of a group.", at_least(0), update_mode=CLUSTER_WIDE
    )
    group_consumer_min_assignment_interval_ms: int = declare(
        INT, 0, "Lowest assignment interval of a group.", at_least(0)
    )
    group_consumer_max_assignment_interval_ms: int = declare(
        INT, 15_000, "Highest assignment interval of a group.", at_least(0)
    )
    group_consumer_regex_refresh_interval_ms: int = declare(
        INT,
        600_000,
        "Interval in which the regular expressions of a group are matched again.",
        at_least(10_000),
        internal=True,
    )
    offset_metadata_max_bytes: int = declare(INT, 4_096, "Largest metadata of a committed offset, in bytes.")
    offsets_commit_timeout_ms: int = declare(
        INT, 5_000, "How long a commit may wait for the replicas of the offsets topic.", at_least(1)
    )
    offsets_retention_minutes: int = declare(
        INT, 10_080, "How long the offsets of an empty group are kept.", at_least(1)
    )
    offsets_retention_check_interval_ms: int = declare(
        LONG, 600_000, "Interval of the check for expired offsets.", at_least(1)
    )
    offsets_topic_num_partitions: int = declare(INT, 50, "Partitions of the offsets topic.", at_least(1))
    offsets_topic_replication_factor: int = declare(SHORT, 3, "Replicas of the offsets topic.", at_least(1))
    offsets_topic_segment_bytes: int = declare(INT, 104_857_600, "segment.bytes of the offsets topic.", at_least(1))
    offsets_topic_compression_codec: int = declare(
        INT, 0, "Compression of the offsets topic by its code; 0 is none.", Between(0, 4)
    )
    offsets_load_buffer_size: int = declare(INT, 5_242_880, "Bytes read at once when offsets are loaded.", at_least(1))


@dataclass(frozen=True, kw_only=True)
class TransactionConfigs:
    """Transactions and idempotent producers."""

    transactional_id_expiration_ms: int = declare(
        INT, 604_800_000, "How long an idle transactional id is remembered.", at_least(1)
    )
    transaction_max_timeout_ms: int = declare(
        INT, 900_000, "Longest transaction timeout that a producer may ask for.", at_least(1)
    )
    transaction_state_log_min_isr: int = declare(INT, 2, "min.insync.replicas of the transaction topic.", at_least(1))
    transaction_state_log_replication_factor: int = declare(SHORT, 3, "Replicas of the transaction topic.", at_least(1))
    transaction_state_log_num_partitions: int = declare(INT, 50, "Partitions of the transaction topic.", at_least(1))
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
        INT, 100, "How long a broker asks again to add a partition while another transaction is ending.", at_least(0)
    )
    add_partitions_to_txn_retry_backoff_ms: int = declare(INT, 20, "Wait between two of these requests.", at_least(1))
    transaction_two_phase_commit_enable: bool = declare(
        BOOLEAN, False, "Whether transactions without a timeout are allowed (KIP-939)."
    )
    producer_id_expiration_ms: int = declare(
        INT, 86_400_000, "How long the state of an idle producer id is kept.", at_least(1), update_mode=CLUSTER_WIDE
    )
    producer_id_expiration_check_interval_ms: int = declare(
        INT, 600_000, "Interval of the removal of expired producer ids.", at_least(1), internal=True
    )
