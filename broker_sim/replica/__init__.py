"""Replication: partitions, followers, and the delayed operations that wait for them."""

from broker_sim.replica.add_partitions_to_txn_manager import AddPartitionsToTxnManager, TransactionSupportedOperation
from broker_sim.replica.alter_partition_manager import AlterPartitionManager, IsrDecision, IsrProposal
from broker_sim.replica.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsPartitionStatus
from broker_sim.replica.delayed_elect_leader import DelayedElectLeader
from broker_sim.replica.delayed_fetch import DelayedFetch
from broker_sim.replica.delayed_produce import DelayedProduce, ProducePartitionStatus
from broker_sim.replica.fetch_params import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData
from broker_sim.replica.fetcher import FetcherManager, ReplicaFetcher
from broker_sim.replica.follower_session import INITIAL_EPOCH, FollowerFetch, FollowerSession
from broker_sim.replica.isr_state import CommittedIsr, PendingIsr
from broker_sim.replica.leader_link import LeaderLink, ReplicaServer
from broker_sim.replica.log_dir_moves import LogDirMoves
from broker_sim.replica.metadata_applier import MetadataApplier
from broker_sim.replica.partition import Partition
from broker_sim.replica.purgatories import Purgatories
from broker_sim.replica.replica_manager import ReplicaManager
from broker_sim.replica.replica_quota import ReplicaQuota
from broker_sim.replica.replica_selector import RackAwareReplicaSelector
from broker_sim.replica.transactional_appends import TransactionalAppends, TransactionalProducer

__all__ = [
    "INITIAL_EPOCH",
    "AddPartitionsToTxnManager",
    "AlterPartitionManager",
    "CommittedIsr",
    "DelayedDeleteRecords",
    "DelayedElectLeader",
    "DelayedFetch",
    "DelayedProduce",
    "DeleteRecordsPartitionStatus",
    "FetchIsolation",
    "FetchParams",
    "FetchPartition",
    "FetchPartitionData",
    "FetcherManager",
    "FollowerFetch",
    "FollowerSession",
    "IsrDecision",
    "IsrProposal",
    "LeaderLink",
    "LogDirMoves",
    "MetadataApplier",
    "Partition",
    "PendingIsr",
    "ProducePartitionStatus",
    "Purgatories",
    "RackAwareReplicaSelector",
    "ReplicaFetcher",
    "ReplicaManager",
    "ReplicaQuota",
    "ReplicaServer",
    "TransactionSupportedOperation",
    "TransactionalAppends",
    "TransactionalProducer",
]
