"""Configurations of the logs on a broker: segments, retention, cleaning, timestamps.

Mirrors `ServerLogConfigs` and `CleanerConfig`, with the defaults of Kafka. Most are the
defaults of a topic's configuration of a similar name.
"""

from broker_sim.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_DOUBLE,
    MAX_LONG,
    NOT_EMPTY,
    STRING,
    Between,
    Configs,
    ListOf,
    OneOf,
    at_least,
    declare,
)

CLEANUP_POLICIES = ListOf(("compact", "delete"))
TIMESTAMP_TYPES = OneOf(("CreateTime", "LogAppendTime"))


class ServerLogConfigs(Configs):
    """Segments, retention and timestamps."""

    num_partitions: int = declare(INT, 1, "Number of partitions of a topic that is created without one.", at_least(1))
    log_dirs: tuple[str, ...] | None = declare(
        LIST, None, "Log directories: in memory only names; with --data-dir, that many subdirectories.", NOT_EMPTY
    )
    log_dir: tuple[str, ...] = declare(LIST, ("/tmp/kafka-logs",), "Directory of the logs.", NOT_EMPTY)  # noqa: S108 - Kafka's default
    log_segment_bytes: int = declare(
        INT, 1_073_741_824, "Size in bytes at which a segment is rolled.", at_least(1_048_576), update_mode=CLUSTER_WIDE
    )
    log_roll_ms: int | None = declare(LONG, None, "Age at which a segment is rolled.", update_mode=CLUSTER_WIDE)
    log_roll_hours: int = declare(
        INT, 168, "Age in hours at which a segment is rolled, if log.roll.ms is not set.", at_least(1)
    )
    log_roll_jitter_ms: int | None = declare(
        LONG, None, "Largest random time by which a segment is rolled earlier.", update_mode=CLUSTER_WIDE
    )
    log_roll_jitter_hours: int = declare(
        INT,
        0,
        "Maximum random time in hours by which a segment is rolled earlier, if log.roll.jitter.ms is not set.",
        at_least(0),
    )
    log_retention_ms: int | None = declare(
        LONG, None, "How long records are kept; -1 sets no limit.", update_mode=CLUSTER_WIDE
    )
    log_retention_minutes: int | None = declare(
        INT, None, "How long records are kept, in minutes, if log.retention.ms is not set."
    )
    log_retention_hours: int = declare(
        INT, 168, "How long records are kept, in hours, if log.retention.minutes is not set."
    )
    log_retention_bytes: int = declare(
        LONG,
        -1,
        "Size of a partition above which old segments are deleted; -1 sets no limit.",
        update_mode=CLUSTER_WIDE,
    )
    log_retention_check_interval_ms: int = declare(
        LONG, 300_000, "Interval of the check for segments to delete.", at_least(1)
    )
    log_cleanup_policy: tuple[str, ...] = declare(
        LIST,
        ("delete",),
        "What happens to old records: delete, compact, or both.",
        CLEANUP_POLICIES,
        update_mode=CLUSTER_WIDE,
    )
    log_index_size_max_bytes: int = declare(
        INT, 10_485_760, "Largest size of an offset index.", at_least(4), update_mode=CLUSTER_WIDE
    )
    log_index_interval_bytes: int = declare(
        INT, 4_096, "Bytes between two entries of the offset index.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_flush_interval_messages: int = declare(
        LONG, MAX_LONG, "Records after which a log is flushed to disk.", at_least(1), update_mode=CLUSTER_WIDE
    )
    log_flush_interval_ms: int | None = declare(
        LONG, None, "Time after which a log is flushed to disk.", update_mode=CLUSTER_WIDE
    )
    log_flush_scheduler_interval_ms: int = declare(LONG, MAX_LONG, "Interval of the check for logs to flush.")
    log_flush_offset_checkpoint_interval_ms: int = declare(
        INT, 60_000, "Interval between two checkpoints of the recovery points.", at_least(0)
    )
    log_flush_start_offset_checkpoint_interval_ms: int = declare(
        INT, 60_000, "Interval between two checkpoints of the log start offsets.", at_least(0)
    )
    log_segment_delete_delay_ms: int = declare(
        LONG, 60_000, "How long the files of a deleted segment are kept.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_preallocate: bool = declare(
        BOOLEAN, False, "Whether a segment's file is allocated at its full size.", update_mode=CLUSTER_WIDE
    )
    log_message_timestamp_type: str = declare(
        STRING,
        "CreateTime",
        "Whether a record's timestamp is its producer's or the time of its append.",
        TIMESTAMP_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms: int = declare(
        LONG, MAX_LONG, "How far a record's timestamp may be in the past.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_message_timestamp_after_max_ms: int = declare(
        LONG, 3_600_000, "How far a record's timestamp may be in the future.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_initial_task_delay_ms: int = declare(
        LONG,
        30_000,
        "Delay before the first check of retention and the first checkpoint of log starts.",
        at_least(0),
        internal=True,
    )


class CleanerConfigs(Configs):
    """The log cleaner, which compacts logs."""

    log_cleaner_enable: bool = declare(BOOLEAN, True, "Whether the log cleaner runs.")
    log_cleaner_threads: int = declare(
        INT, 1, "Logs that the cleaner cleans at the same time.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_cleaner_io_max_bytes_per_second: float = declare(
        DOUBLE, MAX_DOUBLE, "Maximum bytes per second that the cleaner reads and writes.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size: int = declare(
        LONG,
        134_217_728,
        "Memory in bytes for the keys of one cleaning, 24 per key, divided among the threads.",
        update_mode=CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size: int = declare(
        INT,
        524_288,
        "I/O buffer in bytes; a cleaner thread yields after reading half of its share.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_load_factor: float = declare(
        DOUBLE, 0.9, "Share of the memory for keys that one cleaning uses.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_backoff_ms: int = declare(
        LONG,
        15_000,
        "How long the cleaner waits when there is nothing to clean.",
        at_least(0),
        update_mode=CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio: float = declare(
        DOUBLE, 0.5, "Share of uncleaned bytes at which a log is cleaned.", Between(0, 1), update_mode=CLUSTER_WIDE
    )
    log_cleaner_delete_retention_ms: int = declare(
        LONG, 86_400_000, "How long tombstones are kept.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_cleaner_min_compaction_lag_ms: int = declare(
        LONG, 0, "Time before which a record is not compacted.", at_least(0), update_mode=CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms: int = declare(
        LONG,
        MAX_LONG,
        "Time after which a record may be compacted whatever the dirty ratio.",
        at_least(1),
        update_mode=CLUSTER_WIDE,
    )
