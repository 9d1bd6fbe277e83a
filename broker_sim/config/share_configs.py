"""Configurations of share groups, and of the share coordinator that keeps their state.

Mirrors the share groups' part of `GroupCoordinatorConfig`, `ShareGroupConfig` and
`ShareCoordinatorConfig`, with the defaults of Kafka 4.3.
"""

from dataclasses import dataclass
from typing import Any, Final

from broker_sim.config.definition import CLUSTER_WIDE, INT, SHORT, Between, at_least, declare
from broker_sim.config.group_limits import HEARTBEAT_AND_SESSION, check_heartbeat_interval, check_limits

_ORDERED: Final = (
    *HEARTBEAT_AND_SESSION,
    ("min_delivery_count_limit", "delivery_count_limit", "max_delivery_count_limit"),
    ("min_record_lock_duration_ms", "record_lock_duration_ms", "max_record_lock_duration_ms"),
    ("min_partition_max_record_locks", "partition_max_record_locks", "max_partition_max_record_locks"),
    ("max_size", "max_share_sessions"),
)
"""Names behind `group_share_`, none of which may be above the next one of its row."""


@dataclass(frozen=True, kw_only=True)
class ShareGroupConfigs:
    """Members of share groups, and how records are delivered to them."""

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
    group_share_max_size: int = declare(INT, 200, "Most members of a share group.", Between(1, 1_000))
    group_share_assignment_interval_ms: int = declare(
        INT, 1_000, "Shortest time between two assignments of a share group.", at_least(0), update_mode=CLUSTER_WIDE
    )
    group_share_min_assignment_interval_ms: int = declare(
        INT, 0, "Lowest assignment interval of a share group.", at_least(0)
    )
    group_share_max_assignment_interval_ms: int = declare(
        INT, 15_000, "Highest assignment interval of a share group.", at_least(0)
    )
    group_share_initialize_retry_interval_ms: int = declare(
        INT,
        30_000,
        "After so long the state of a share partition that is not there yet is initialized again.",
        at_least(1),
        internal=True,
    )
    group_share_delivery_count_limit: int = declare(
        INT, 5, "Most deliveries of a record to a share group.", Between(2, 10)
    )
    group_share_min_delivery_count_limit: int = declare(
        INT, 2, "Lowest limit of deliveries of a share group.", Between(2, 5)
    )
    group_share_max_delivery_count_limit: int = declare(
        INT, 10, "Highest limit of deliveries of a share group.", Between(5, 25)
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
        INT, 2_000, "Most records of a share partition that are in flight.", Between(100, 10_000)
    )
    group_share_min_partition_max_record_locks: int = declare(
        INT, 100, "Lowest limit of records in flight of a share group.", Between(100, 2_000)
    )
    group_share_max_partition_max_record_locks: int = declare(
        INT, 4_000, "Highest limit of records in flight of a share group.", Between(2_000, 10_000)
    )
    group_share_max_share_sessions: int = declare(INT, 2_000, "Most share sessions of a broker.", at_least(1))
    share_fetch_purgatory_purge_interval_requests: int = declare(
        INT, 1_000, "Completed share fetches that may stay in their purgatory until it is purged."
    )


@dataclass(frozen=True, kw_only=True)
class ShareCoordinatorConfigs:
    """The share coordinator and its topic, `__share_group_state`."""

    share_coordinator_state_topic_num_partitions: int = declare(
        INT, 50, "Partitions of the share groups' state topic.", at_least(1)
    )
    share_coordinator_state_topic_replication_factor: int = declare(
        SHORT, 3, "Replicas of the share groups' state topic.", at_least(1)
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
        INT, 300_000, "Interval in which records are deleted that newer ones have replaced.", at_least(1), internal=True
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = declare(
        INT,
        300_000,
        "After so long without a snapshot an idle share partition is written as one.",
        at_least(1),
        internal=True,
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = declare(
        INT, 500, "Updates of a share partition between two snapshots of it.", Between(0, 500)
    )
    share_coordinator_write_timeout_ms: int = declare(
        INT, 5_000, "How long a write may wait for the replicas of the state topic.", at_least(1)
    )
    share_coordinator_load_buffer_size: int = declare(
        INT, 5_242_880, "Bytes read at once when share partitions are loaded.", at_least(1)
    )


def check_share_configs(config: Any) -> None:
    """Raise ConfigError when these configurations of a broker do not fit together; mirrors `validate`."""
    check_limits(config, "group_share_", _ORDERED)
    check_heartbeat_interval(config, "group_share_")
