"""Share partitions (KIP-932): who has which records of a partition, for how long, and what became of them."""

from broker_sim.share_partition.acknowledgement import FailedRequestError
from broker_sim.share_partition.acquisition import WantedRecords
from broker_sim.share_partition.environment import ShareGroupSettings, SharePartitionEnvironment
from broker_sim.share_partition.log_reader import LogReader
from broker_sim.share_partition.manager_environment import SharePartitionManagerEnvironment
from broker_sim.share_partition.record_state import AcknowledgeType, RecordState
from broker_sim.share_partition.share_fetch import ShareFetch, SharePartitionData, rotate
from broker_sim.share_partition.share_partition import SharePartition, SharePartitionState
from broker_sim.share_partition.share_partition_manager import SharePartitionManager

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
