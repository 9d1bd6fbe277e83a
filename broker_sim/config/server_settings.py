"""Configurations of the broker itself: sockets, registration, replication, topics.

Mirrors ``SocketServerConfigs``, ``KRaftConfigs``, ``ServerConfigs`` and ``ReplicationConfigs``,
with the defaults of Kafka 4.3.
"""

from dataclasses import dataclass

from broker_sim.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LONG,
    MAX_INT,
    STRING,
    Between,
    BetweenOrDefault,
    OneOf,
    at_least,
    declare,
)

COMPRESSION_TYPES = OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))


@dataclass(frozen=True, kw_only=True)
class SocketServerConfigs:
    """Connections and requests."""

    socket_request_max_bytes: int = declare(
        INT, 104_857_600, "Largest request in bytes that the server reads.", at_least(1)
    )
    socket_send_buffer_bytes: int = declare(
        INT, 102_400, "Send buffer of a server socket in bytes; -1 leaves it to the system."
    )
    socket_receive_buffer_bytes: int = declare(
        INT, 102_400, "Receive buffer of a server socket in bytes; -1 leaves it to the system."
    )
    socket_listen_backlog_size: int = declare(
        INT, 50, "Connections that may wait to be accepted.", at_least(1)
    )
    connections_max_idle_ms: int = declare(
        LONG, 600_000, "A connection that is idle for so long is closed."
    )
    max_connections: int = declare(
        INT,
        MAX_INT,
        "Connections that the broker holds open at once.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    max_connections_per_ip: int = declare(
        INT,
        MAX_INT,
        "Connections from one address at once.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    queued_max_requests: int = declare(
        INT, 500, "Requests that may wait before the broker stops reading sockets.", at_least(1)
    )
    request_timeout_ms: int = declare(
        INT, 30_000, "How long the broker waits for the answer to a request of its own."
    )


@dataclass(frozen=True, kw_only=True)
class KRaftConfigs:
    """Who the broker is and how it keeps in touch with the controller."""

    node_id: int = declare(
        INT, -1, "The number of this node; -1 when there is none yet.", at_least(-1)
    )
    broker_id: int = declare(
        INT, -1, "The old name of node.id; if both are given they must be equal."
    )
    broker_rack: str | None = declare(
        STRING, None, "The rack of this broker, for replica placement and fetching nearby."
    )
    broker_heartbeat_interval_ms: int = declare(
        INT, 2_000, "Time between two heartbeats of the broker to the controller."
    )
    broker_session_timeout_ms: int = declare(
        INT, 9_000, "The controller fences a broker that sent no heartbeat for so long."
    )
    initial_broker_registration_timeout_ms: int = declare(
        INT, 60_000, "A starting broker gives up when it is not registered after so long."
    )
    metadata_max_idle_interval_ms: int = declare(
        INT, 500, "How often an idle controller writes a record to its log.", at_least(0)
    )
    controlled_shutdown_enable: bool = declare(
        BOOLEAN, True, "Whether a stopping broker hands over its leaderships first."
    )


@dataclass(frozen=True, kw_only=True)
class ServerConfigs:
    """What the broker offers to clients."""

    auto_create_topics_enable: bool = declare(
        BOOLEAN, True, "Whether asking for an unknown topic creates it."
    )
    delete_topic_enable: bool = declare(BOOLEAN, True, "Whether topics may be deleted.")
    message_max_bytes: int = declare(
        INT,
        1_048_588,
        "Largest record batch in bytes that is accepted, after compression.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    compression_type: str = declare(
        STRING,
        "producer",
        "Final compression of the records; `producer` keeps what the producer chose.",
        COMPRESSION_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    compression_gzip_level: int = declare(
        INT,
        -1,
        "Level for gzip; -1 is its own default.",
        BetweenOrDefault(1, 9, -1),
        update_mode=CLUSTER_WIDE,
    )
    compression_lz4_level: int = declare(
        INT, 9, "Level for lz4.", Between(1, 17), update_mode=CLUSTER_WIDE
    )
    compression_zstd_level: int = declare(
        INT, 3, "Level for zstd.", Between(-131_072, 22), update_mode=CLUSTER_WIDE
    )
    fetch_max_bytes: int = declare(
        INT, 57_671_680, "Most bytes in the answer to one fetch.", at_least(1024)
    )
    max_incremental_fetch_session_cache_slots: int = declare(
        INT, 1_000, "Incremental fetch sessions that the broker keeps.", at_least(0)
    )
    max_request_partition_size_limit: int = declare(
        INT, 2_000, "Most partitions in one answer to DescribeTopicPartitions.", at_least(1)
    )


@dataclass(frozen=True, kw_only=True)
class ReplicationConfigs:
    """Replicas, leaders and the waiting for them."""

    default_replication_factor: int = declare(
        INT, 1, "Replicas of a topic made without a number of its own."
    )
    min_insync_replicas: int = declare(
        INT,
        1,
        "In-sync replicas without which acks=all is refused.",
        at_least(1),
        update_mode=CLUSTER_WIDE,
    )
    unclean_leader_election_enable: bool = declare(
        BOOLEAN,
        False,
        "Whether a replica outside the ISR may lead when nobody else can; loses records.",
        update_mode=CLUSTER_WIDE,
    )
    unclean_leader_election_interval_ms: int = declare(
        LONG,
        300_000,
        "How often leaderless partitions are checked for an unclean election.",
        at_least(1),
        internal=True,
    )
    auto_leader_rebalance_enable: bool = declare(
        BOOLEAN, True, "Whether leadership goes back to the preferred replicas by itself."
    )
    leader_imbalance_check_interval_seconds: int = declare(
        LONG, 300, "How often the controller looks for leaders that are not preferred.", at_least(1)
    )
    replica_lag_time_max_ms: int = declare(
        LONG, 30_000, "A follower that has not caught up for so long leaves the ISR."
    )
    replica_fetch_wait_max_ms: int = declare(
        INT, 500, "How long a leader may hold a follower's fetch that finds too little."
    )
    replica_fetch_min_bytes: int = declare(
        INT, 1, "Bytes that a follower's fetch waits for, up to its maximal wait."
    )
    replica_fetch_max_bytes: int = declare(
        INT, 1_048_576, "Bytes of one partition in a follower's fetch.", at_least(0)
    )
    replica_fetch_response_max_bytes: int = declare(
        INT, 10_485_760, "Bytes of the whole answer to a follower's fetch.", at_least(0)
    )
    replica_fetch_backoff_ms: int = declare(
        INT, 1_000, "Pause of a follower after a failed fetch of a partition.", at_least(0)
    )
    replica_socket_timeout_ms: int = declare(
        INT, 30_000, "How long a follower waits for the answer to a fetch."
    )
    num_replica_fetchers: int = declare(
        INT, 1, "Fetchers per leader broker.", at_least(1), update_mode=CLUSTER_WIDE
    )
    replica_high_watermark_checkpoint_interval_ms: int = declare(
        LONG, 5_000, "How often the high watermarks are written to disk."
    )
    fetch_purgatory_purge_interval_requests: int = declare(
        INT, 1_000, "Completed fetches that may stay on watch lists before they are swept."
    )
    producer_purgatory_purge_interval_requests: int = declare(
        INT, 1_000, "Completed produces that may stay on watch lists before they are swept."
    )
    delete_records_purgatory_purge_interval_requests: int = declare(
        INT, 1, "Completed record deletions that may stay on watch lists before the sweep."
    )
