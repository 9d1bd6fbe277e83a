"""Share partitions (KIP-932): who has which records of a partition, for how long, and what became of them."""

from broker_sim.share.partition.acknowledgement import FailedRequestError
from broker_sim.share.partition.acquisition import WantedRecords
from broker_sim.share.partition.environment import ShareGroupSettings, SharePartitionEnvironment
from broker_sim.share.partition.log_reader import LogReader
from broker_sim.share.partition.manager_environment import SharePartitionManagerEnvironment
from broker_sim.share.partition.record_state import AcknowledgeType, RecordState
from broker_sim.share.partition.share_fetch import ShareFetch, SharePartitionData, rotate
from broker_sim.share.partition.share_partition import SharePartition, SharePartitionState
from broker_sim.share.partition.share_partition_manager import SharePartitionManager

__all__ = [
    "AcknowledgeType",
    "FailedRequestError",
    "LogReader",
    "RecordState",
    "ShareFetch",
    "ShareGroupSettings",
    "SharePartition",
    "SharePartitionData",
    "SharePartitionEnvironment",
    "SharePartitionManager",
    "SharePartitionManagerEnvironment",
    "SharePartitionState",
    "WantedRecords",
    "rotate",
]
