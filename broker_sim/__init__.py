"""A mini Kafka cluster in Python whose waiting is that of a real one.

`Cluster` runs it in real time in a thread of its own, `AsyncCluster` on your event loop,
`VirtualCluster` in virtual time. All names are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.cluster.cluster import Cluster
    from broker_sim.cluster.records import TopicRecord, TopicRecords
    from broker_sim.cluster.status import (
        BrokerStatus,
        ClusterStatus,
        FaultStatus,
        LinkStatus,
        PartitionStatus,
        PurgatoriesStatus,
        PurgatoryStatus,
        ReplicaStatus,
        TopicStatus,
    )
    from broker_sim.cluster.virtual_cluster import SimulationError, VirtualCluster
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
    from broker_sim.handlers.faults import Fault, InjectedFault
    from broker_sim.purgatory import ParkedOperation
    from broker_sim.trace import Trace

    compiled: bool
    """Whether the hot modules are native. Both builds behave the same; only the speed differs."""

__all__ = [
    "ApiError",
    "AsyncCluster",
    "BrokerStatus",
    "Cluster",
    "ClusterStatus",
    "ClusterTimeoutError",
    "ConfigError",
    "ErrorCode",
    "Fault",
    "FaultStatus",
    "InjectedFault",
    "LinkStatus",
    "MissingExtraError",
    "ParkedOperation",
    "PartitionStatus",
    "PurgatoriesStatus",
    "PurgatoryStatus",
    "ReplicaStatus",
    "SimulationError",
    "TopicRecord",
    "TopicRecords",
    "TopicStatus",
    "Trace",
    "UnknownBrokerError",
    "UnknownPartitionError",
    "VirtualCluster",
    "WrongStateError",
    "compiled",
]

_MODULES = {
    "broker_sim.cluster.async_cluster": ("AsyncCluster",),
    "broker_sim.cluster.cluster": ("Cluster",),
    "broker_sim.cluster.records": ("TopicRecord", "TopicRecords"),
    "broker_sim.cluster.status": (
        "BrokerStatus",
        "ClusterStatus",
        "FaultStatus",
        "LinkStatus",
        "PartitionStatus",
        "PurgatoriesStatus",
        "PurgatoryStatus",
        "ReplicaStatus",
        "TopicStatus",
    ),
    "broker_sim.cluster.virtual_cluster": ("SimulationError", "VirtualCluster"),
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
    "broker_sim.handlers.faults": ("Fault", "InjectedFault"),
    "broker_sim.trace": ("Trace",),
    "broker_sim.purgatory": ("ParkedOperation",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "compiled":
        return not str(import_module("broker_sim.runtime.process").__file__).endswith(".py")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
