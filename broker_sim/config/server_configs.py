"""Configurations of the broker itself: sockets, registration, replication, topics, quotas.

Mirrors `SocketServerConfigs`, `KRaftConfigs`, `ServerConfigs`, `ReplicationConfigs` and `QuotaConfig`, with the
defaults of Kafka.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_sim.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    MAX_ARRAY_BYTES,
    MAX_INT,
    MAX_LONG,
    NOT_EMPTY,
    STRING,
    Between,
    BetweenOrDefault,
    ConfigDef,
    Configs,
    OneOf,
    UpdateMode,
    at_least,
    declare,
)

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTORS = (None, "org.apache.kafka.common.replica.LeaderSelector", RACK_AWARE_SELECTOR)
COMPRESSION_TYPES = OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))


class SocketServerConfigs(Configs):
    """Listeners, connections and requests."""

    listeners: tuple[str, ...] = declare(
        LIST,
        ("PLAINTEXT://:9092",),
        "Name, host and port of each listener; if not set, the cluster chooses them.",
        NOT_EMPTY,
        update_mode=UpdateMode.PER_BROKER,
    )
    advertised_listeners: tuple[str, ...] | None = declare(
        LIST, None, "Listeners and addresses that clients get; all listeners if not set.", NOT_EMPTY
    )
    listener_security_protocol_map: str = declare(
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener.",
        update_mode=UpdateMode.PER_BROKER,
    )
    socket_request_max_bytes: int = declare(INT, 104_857_600, "Maximum size of a request in bytes.", at_least(1))
    socket_send_buffer_bytes: int = declare(
        INT, 102_400, "Send buffer of a socket in bytes; -1 is the system's default."
    )
    socket_receive_buffer_bytes: int = declare(
        INT, 102_400, "Receive buffer of a socket in bytes; -1 is the system's default."
    )
    socket_listen_backlog_size: int = declare(INT, 50, "Connections that may wait to be accepted.", at_least(1))
    connections_max_idle_ms: int = declare(LONG, 600_000, "Time after which an idle connection is closed.")
    max_connections: int = declare(
        INT,
        MAX_INT,
        "Maximum number of connections of the broker, and of each listener without its own limit.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    max_connections_per_ip: int = declare(
        INT, MAX_INT, "Maximum number of connections from one IP address.", at_least(0), update_mode=CLUSTER_WIDE
    )
    max_connections_per_ip_overrides: str = declare(
        STRING,
        "",
        "Overrides of `max.connections.per.ip` for single addresses: `10.0.0.1:5,localhost:9`.",
        update_mode=CLUSTER_WIDE,
    )
    max_connection_creation_rate: int = declare(
        INT,
        MAX_INT,
        "Maximum connections per second that the broker accepts, and each listener without its own rate.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    queued_max_requests: int = declare(
        INT, 500, "Requests that may be queued before the broker stops reading from sockets.", at_least(1)
    )
    request_timeout_ms: int = declare(INT, 30_000, "How long the broker waits for the response to its own request.")


class KRaftConfigs(Configs):
    """Identity of the broker, and its session with the controller."""

    node_id: int = declare(INT, -1, "Id of this node, assigned by the cluster.", at_least(-1))
    broker_id: int = declare(INT, -1, "The old name of node.id.")
    broker_rack: str | None = declare(
        STRING, None, "Rack of this broker, for replica placement and for consumers in the same rack."
    )
    broker_heartbeat_interval_ms: int = declare(
        INT, 2_000, "Time between two heartbeats of the broker to the controller."
    )
    broker_session_timeout_ms: int = declare(
        INT, 9_000, "Time without a heartbeat after which the controller fences a broker."
    )
    initial_broker_registration_timeout_ms: int = declare(
        INT, 60_000, "Time after which a starting broker that could not register stops."
    )
    metadata_max_idle_interval_ms: int = declare(
        INT, 500, "Longest time between two records of the metadata log.", at_least(0)
    )
    controlled_shutdown_enable: bool = declare(
        BOOLEAN, True, "Whether a broker moves its leaderships to other brokers before it shuts down."
    )


class ServerConfigs(Configs):
    """Topics, sizes and compression."""

    auto_create_topics_enable: bool = declare(
        BOOLEAN, True, "Whether a metadata request for an unknown topic creates it."
    )
    delete_topic_enable: bool = declare(BOOLEAN, True, "Whether topics may be deleted.")
    unstable_api_versions_enable: bool = declare(
        BOOLEAN, False, "Whether API versions that the release has not finished are served.", internal=True
    )
    unstable_feature_versions_enable: bool = declare(
        BOOLEAN, False, "Whether feature levels that the release has not finished are supported.", internal=True
    )
    message_max_bytes: int = declare(
        INT,
        1_048_588,
        "Maximum size of a record batch in bytes, after compression.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    max_decompressed_message_bytes: int = declare(
        INT,
        MAX_ARRAY_BYTES,
        "Maximum size of a record in a compressed batch, in bytes.",
        Between(1, MAX_ARRAY_BYTES),
        update_mode=CLUSTER_WIDE,
        since="4.4",
    )
    compression_type: str = declare(
        STRING,
        "producer",
        "Final compression of the records; `producer` keeps what the producer chose.",
        COMPRESSION_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    compression_gzip_level: int = declare(
        INT, -1, "Level of gzip; -1 is the default of gzip.", BetweenOrDefault(1, 9, -1), update_mode=CLUSTER_WIDE
    )
    compression_lz4_level: int = declare(INT, 9, "Level of lz4.", Between(1, 17), update_mode=CLUSTER_WIDE)
    compression_zstd_level: int = declare(INT, 3, "Level of zstd.", Between(-131_072, 22), update_mode=CLUSTER_WIDE)
    fetch_max_bytes: int = declare(INT, 57_671_680, "Maximum size of a fetch response in bytes.", at_least(1024))
    max_incremental_fetch_session_cache_slots: int = declare(
        INT, 1_000, "Maximum number of incremental fetch sessions of the broker.", at_least(0)
    )
    replica_selector_class: str | None = declare(
        STRING, None, "Class that selects the replica a consumer reads from; if not set, the leader."
    )
    max_request_partition_size_limit: int = declare(
        INT, 2_000, "Maximum number of partitions in a DescribeTopicPartitions response.", at_least(1)
    )


class ReplicationConfigs(Configs):
    """Replication, leader elections and purgatories."""

    inter_broker_listener_name: str | None = declare(
        STRING, None, "Inter-broker listener; it must be an advertised listener."
    )
    default_replication_factor: int = declare(INT, 1, "Replication factor of a topic that is created without one.")
    min_insync_replicas: int = declare(
        INT,
        1,
        "Minimum number of in-sync replicas for a produce with acks=all.",
        at_least(1),
        update_mode=CLUSTER_WIDE,
    )
    unclean_leader_election_enable: bool = declare(
        BOOLEAN,
        False,
        "Whether a replica outside the ISR may become leader; records may be lost.",
        update_mode=CLUSTER_WIDE,
    )
    unclean_leader_election_interval_ms: int = declare(
        LONG, 300_000, "Interval of the check for partitions that need an unclean election.", at_least(1), internal=True
    )
    auto_leader_rebalance_enable: bool = declare(
        BOOLEAN, True, "Whether the controller moves leaderships back to the preferred replicas."
    )
    leader_imbalance_check_interval_seconds: int = declare(
        LONG, 300, "Interval of the check for leaders that are not the preferred replica.", at_least(1)
    )
    replica_lag_time_max_ms: int = declare(
        LONG, 30_000, "Time after which a follower that has not caught up is removed from the ISR."
    )
    replica_fetch_wait_max_ms: int = declare(
        INT, 500, "Longest wait of a follower's fetch for replica.fetch.min.bytes."
    )
    replica_fetch_min_bytes: int = declare(INT, 1, "Minimum number of bytes that a follower's fetch waits for.")
    replica_fetch_max_bytes: int = declare(
        INT, 1_048_576, "Maximum number of bytes of one partition in a follower's fetch.", at_least(0)
    )
    replica_fetch_response_max_bytes: int = declare(
        INT, 10_485_760, "Maximum size of the response to a follower's fetch, in bytes.", at_least(0)
    )
    replica_fetch_backoff_ms: int = declare(
        INT, 1_000, "How long a follower waits after a failed fetch of a partition.", at_least(0)
    )
    replica_socket_timeout_ms: int = declare(INT, 30_000, "How long a follower waits for the response to a fetch.")
    num_replica_fetchers: int = declare(INT, 1, "Fetchers for each leader.", at_least(1), update_mode=CLUSTER_WIDE)
    replica_high_watermark_checkpoint_interval_ms: int = declare(
        LONG, 5_000, "Interval between two checkpoints of the high watermarks."
    )
    fetch_purgatory_purge_interval_requests: int = declare(
        INT, 1_000, "Completed fetches in watch lists above which the purgatory is purged."
    )
    producer_purgatory_purge_interval_requests: int = declare(
        INT, 1_000, "Completed produces in watch lists above which the purgatory is purged."
    )
    delete_records_purgatory_purge_interval_requests: int = declare(
        INT, 1, "Completed record deletions in watch lists above which the purgatory is purged."
    )


class QuotaConfigs(Configs):
    """Windows over which rates are measured: the number of samples and the length of each."""

    quota_window_num: int = declare(
        INT, 11, "Number of samples of a client's rate, including the current one.", at_least(1)
    )
    quota_window_size_seconds: int = declare(INT, 1, "Length of a sample of a client's rate, in seconds.", at_least(1))
    controller_quota_window_num: int = declare(INT, 11, "Number of samples of a client's topic changes.", at_least(1))
    controller_quota_window_size_seconds: int = declare(
        INT, 1, "Length of a sample of a client's topic changes, in seconds.", at_least(1)
    )
    replication_quota_window_num: int = declare(
        INT, 11, "Number of samples of the rate of throttled replicas.", at_least(1)
    )
    replication_quota_window_size_seconds: int = declare(
        INT, 1, "Length of a sample of the rate of throttled replicas, in seconds.", at_least(1)
    )


class ReplicationQuotaConfigs(Configs):
    """Replication throttles, which Kafka has only as dynamic broker configurations."""

    leader_replication_throttled_rate: int = declare(
        LONG,
        MAX_LONG,
        "Maximum rate in bytes per second at which a leader sends leader.replication.throttled.replicas.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    follower_replication_throttled_rate: int = declare(
        LONG,
        MAX_LONG,
        "Maximum rate in bytes per second at which a follower fetches follower.replication.throttled.replicas.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = declare(
        LONG,
        MAX_LONG,
        "Maximum rate in bytes per second at which a broker moves logs between its directories.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )


REPLICATION_QUOTA_CONFIGS: Final[Mapping[str, ConfigDef]] = MappingProxyType(ReplicationQuotaConfigs.definitions)
"""Configurations that are only set at run time, by Kafka's name; they are described only while they are set."""
