"""The log of a partition: segments, offsets, leader epochs, producers, retention."""

from broker_sim.log.append_info import (
    EMPTY_FETCH,
    AppendOrigin,
    FetchDataInfo,
    LogAppendInfo,
    OffsetsOutOfOrderError,
    RecordError,
    RecordValidationError,
    TimestampAndOffset,
    UnexpectedAppendOffsetError,
)
from broker_sim.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from broker_sim.log.log_manager import MEMORY, LogManager
from broker_sim.log.memory import MemoryAccount
from broker_sim.log.offset_lookup import RecordQuery, find_record
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.producer_state_entry import BatchMetadata, ProducerStateEntry, VerificationGuard
from broker_sim.log.producer_state_manager import ProducerStateManager, ProducerStateManagerConfig
from broker_sim.log.storage import (
    DiskOptions,
    LogDirectory,
    LogDirectoryError,
    SimulatedDisk,
    first_log,
    lock_directory,
    suppress_storage_error,
)
from broker_sim.log.transaction_index import AbortedTxn
from broker_sim.log.validator import Appendable, ValidatedRecords, batch_of

__all__ = [
    "EMPTY_FETCH",
    "MEMORY",
    "AbortedTxn",
    "AppendOrigin",
    "Appendable",
    "BatchMetadata",
    "DiskOptions",
    "EpochEntry",
    "FetchDataInfo",
    "LeaderEpochCache",
    "LogAppendInfo",
    "LogDirectory",
    "LogDirectoryError",
    "LogManager",
    "MemoryAccount",
    "OffsetsOutOfOrderError",
    "PartitionLog",
    "ProducerStateEntry",
    "ProducerStateManager",
    "ProducerStateManagerConfig",
    "RecordError",
    "RecordQuery",
    "RecordValidationError",
    "SimulatedDisk",
    "TimestampAndOffset",
    "UnexpectedAppendOffsetError",
    "ValidatedRecords",
    "VerificationGuard",
    "batch_of",
    "find_record",
    "first_log",
    "lock_directory",
    "suppress_storage_error",
]
