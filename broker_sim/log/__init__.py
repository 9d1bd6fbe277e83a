"""The log of a partition: segments, offsets, leader epochs, producers, retention."""

from broker_sim.log.append_info import (
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
from broker_sim.log.log_manager import LogManager
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from broker_sim.log.producer_state_manager import ProducerStateManager
from broker_sim.log.transaction_index import AbortedTxn

__all__ = [
    "AbortedTxn",
    "AppendOrigin",
    "BatchMetadata",
    "EpochEntry",
    "FetchDataInfo",
    "LeaderEpochCache",
    "LogAppendInfo",
    "LogManager",
    "OffsetsOutOfOrderError",
    "PartitionLog",
    "ProducerStateEntry",
    "ProducerStateManager",
    "RecordError",
    "RecordValidationError",
    "TimestampAndOffset",
    "UnexpectedAppendOffsetError",
]
