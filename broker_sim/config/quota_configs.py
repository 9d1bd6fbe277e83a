"""Configurations of quotas: over how much time rates are measured, and how fast replication may be.

Mirrors `QuotaConfig`, with the defaults of Kafka 4.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from broker_sim.config.definition import CLUSTER_WIDE, INT, LONG, MAX_LONG, ConfigDef, at_least, declare, definitions_of


@dataclass(frozen=True, kw_only=True)
class QuotaConfigs:
    """The windows of rates; each has a number of samples and the length of one."""

    quota_window_num: int = declare(INT, 11, "Samples of a client's rate, the running one included.", at_least(1))
    quota_window_size_seconds: int = declare(INT, 1, "Length of a sample of a client's rate.", at_least(1))
    controller_quota_window_num: int = declare(INT, 11, "Samples of a client's changes of topics.", at_least(1))
    controller_quota_window_size_seconds: int = declare(
        INT, 1, "Length of a sample of a client's changes of topics.", at_least(1)
    )
    replication_quota_window_num: int = declare(INT, 11, "Samples of the rate of throttled replicas.", at_least(1))
    replication_quota_window_size_seconds: int = declare(
        INT, 1, "Length of a sample of the rate of throttled replicas.", at_least(1)
    )


@dataclass(frozen=True, kw_only=True)
class ReplicationQuotaConfigs:
    """The limits of replication; Kafka knows them only as dynamic configurations of brokers."""

    leader_replication_throttled_rate: int = declare(
        LONG,
        MAX_LONG,
        "Most bytes per second that a broker sends for replicas in leader.replication.throttled.replicas.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    follower_replication_throttled_rate: int = declare(
        LONG,
        MAX_LONG,
        "Most bytes per second that a broker fetches for replicas in follower.replication.throttled.replicas.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = declare(
        LONG,
        MAX_LONG,
        "Most bytes per second that a broker moves between its log directories.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )


REPLICATION_QUOTA_CONFIGS: Final[Mapping[str, ConfigDef]] = MappingProxyType(definitions_of(ReplicationQuotaConfigs))
"""The configurations that are set at run time only, by Kafka's name; they are told only if they are set."""
