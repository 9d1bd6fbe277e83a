"""A mini Kafka cluster in Python whose waiting is that of a real one.

`Cluster` runs it in real time in a thread of its own, `AsyncCluster` on your event loop,
`VirtualCluster` in virtual time. All names are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.cluster.cluster import Cluster
    from broker_sim.cluster.kafka_container import KafkaContainer
    from broker_sim.cluster.nodes.lost_records import LostRecords
    from broker_sim.cluster.records import TopicRecord, TopicRecords
    from broker_sim.cluster.scopes import Scope
    from broker_sim.cluster.status.cluster_status import (
        BrokerStatus,
        ClusterStatus,
        FaultStatus,
        LinkStatus,
        MemoryStatus,
        PartitionStatus,
        ReplicaStatus,
        TopicStatus,
    )
    from broker_sim.cluster.status.coordinator_status import (
        GroupMemberStatus,
        GroupOffsetStatus,
        GroupsStatus,
        GroupStatus,
    )
    from broker_sim.cluster.status.purgatory_status import PurgatoriesStatus, PurgatoryStatus
    from broker_sim.cluster.status.share_status import InFlightStatus, SharePartitionStatus
    from broker_sim.cluster.status.transaction_status import (
        ProducersStatus,
        ProducerStatus,
        TransactionsStatus,
        TransactionStatus,
    )
    from broker_sim.cluster.virtual.client_host import ClientHost
    from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
    from broker_sim.cluster.virtual.virtual_client import PendingResponse, VirtualClient
    from broker_sim.cluster.virtual.virtual_cluster import SimulationError, VirtualCluster
    from broker_sim.config import GivenValue
    from broker_sim.control.server import ControlServer
    from broker_sim.errors import (
        ApiError,
        ClusterTimeoutError,
        ConfigError,
        ErrorCode,
        MissingExtraError,
        UnknownBrokerError,
        UnknownPartitionError,
        WrongStateError,
    )
    from broker_sim.handlers.denial_log import DenialsStatus, DenialStatus
    from broker_sim.handlers.faults import Fault, HookedRequest, InjectedFault, Loss
    from broker_sim.handlers.request_log import RequestsStatus, RequestStatus
    from broker_sim.log import DiskOptions, SimulatedDisk
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol.api_keys import ApiKey
    from broker_sim.purgatory import ParkedOperation
    from broker_sim.security import KeySet
    from broker_sim.trace import Trace, TraceSink

    compiled: bool
    """Whether the hot modules are native. Both builds behave the same; only the speed differs."""

__all__ = [
    "ApiError",
    "ApiKey",
    "AsyncCluster",
    "BrokerStatus",
    "ClientHost",
    "Cluster",
    "ClusterStatus",
    "ClusterTimeoutError",
    "ConfigError",
    "ControlServer",
    "DenialStatus",
    "DenialsStatus",
    "DiskOptions",
    "ErrorCode",
    "Fault",
    "FaultStatus",
    "GivenValue",
    "GroupMemberStatus",
    "GroupOffsetStatus",
    "GroupStatus",
    "GroupsStatus",
    "HookedRequest",
    "InFlightStatus",
    "InjectedFault",
    "KafkaContainer",
    "KeySet",
    "LinkStatus",
    "Loss",
    "LostRecords",
    "MemoryStatus",
    "MissingExtraError",
    "ParkedOperation",
    "PartitionStatus",
    "PendingResponse",
    "ProducerStatus",
    "ProducersStatus",
    "PurgatoriesStatus",
    "PurgatoryStatus",
    "ReplicaStatus",
    "RequestStatus",
    "RequestsStatus",
    "Scope",
    "SharePartitionStatus",
    "SimulatedCluster",
    "SimulatedDisk",
    "SimulationError",
    "TopicPartition",
    "TopicRecord",
    "TopicRecords",
    "TopicStatus",
    "Trace",
    "TraceSink",
    "TransactionStatus",
    "TransactionsStatus",
    "UnknownBrokerError",
    "UnknownPartitionError",
    "VirtualClient",
    "VirtualCluster",
    "WrongStateError",
    "compiled",
]

_MODULES = {
    "broker_sim.cluster.async_cluster": ("AsyncCluster",),
    "broker_sim.cluster.virtual.client_host": ("ClientHost",),
    "broker_sim.cluster.cluster": ("Cluster",),
    "broker_sim.cluster.status.coordinator_status": (
        "GroupMemberStatus",
        "GroupOffsetStatus",
        "GroupStatus",
        "GroupsStatus",
    ),
    "broker_sim.cluster.kafka_container": ("KafkaContainer",),
    "broker_sim.cluster.nodes.lost_records": ("LostRecords",),
    "broker_sim.cluster.status.purgatory_status": ("PurgatoriesStatus", "PurgatoryStatus"),
    "broker_sim.cluster.status.share_status": ("InFlightStatus", "SharePartitionStatus"),
    "broker_sim.cluster.records": ("TopicRecord", "TopicRecords"),
    "broker_sim.cluster.scopes": ("Scope",),
    "broker_sim.cluster.virtual.simulated_cluster": ("SimulatedCluster",),
    "broker_sim.cluster.status.cluster_status": (
        "BrokerStatus",
        "ClusterStatus",
        "FaultStatus",
        "LinkStatus",
        "MemoryStatus",
        "PartitionStatus",
        "ReplicaStatus",
        "TopicStatus",
    ),
    "broker_sim.cluster.status.transaction_status": (
        "ProducerStatus",
        "ProducersStatus",
        "TransactionStatus",
        "TransactionsStatus",
    ),
    "broker_sim.cluster.virtual.virtual_client": ("PendingResponse", "VirtualClient"),
    "broker_sim.cluster.virtual.virtual_cluster": ("SimulationError", "VirtualCluster"),
    "broker_sim.config": ("GivenValue",),
    "broker_sim.control.server": ("ControlServer",),
    "broker_sim.errors": (
        "ApiError",
        "ClusterTimeoutError",
        "ConfigError",
        "ErrorCode",
        "MissingExtraError",
        "UnknownBrokerError",
        "UnknownPartitionError",
        "WrongStateError",
    ),
    "broker_sim.handlers.denial_log": ("DenialStatus", "DenialsStatus"),
    "broker_sim.handlers.faults": ("Fault", "HookedRequest", "InjectedFault", "Loss"),
    "broker_sim.handlers.request_log": ("RequestStatus", "RequestsStatus"),
    "broker_sim.log": ("DiskOptions", "SimulatedDisk"),
    "broker_sim.metadata.topic_partition": ("TopicPartition",),
    "broker_sim.protocol.api_keys": ("ApiKey",),
    "broker_sim.purgatory": ("ParkedOperation",),
    "broker_sim.security": ("KeySet",),
    "broker_sim.trace": ("Trace", "TraceSink"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "compiled":
        return not str(import_module("broker_sim.runtime.process").__file__).endswith(".py")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
