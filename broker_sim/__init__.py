"""A mini Kafka cluster in Python whose waiting is that of a real one.

`Cluster` runs it in real time in a thread of its own, `AsyncCluster` on your event loop,
`VirtualCluster` in virtual time. They are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.cluster.cluster import Cluster
    from broker_sim.cluster.virtual_cluster import VirtualCluster

    compiled: bool
    """Whether the hot modules are native; see hatch_build.py. It makes no difference but in speed."""

__all__ = ["AsyncCluster", "Cluster", "VirtualCluster", "compiled"]

_HOMES = {
    "AsyncCluster": "broker_sim.cluster.async_cluster",
    "Cluster": "broker_sim.cluster.cluster",
    "VirtualCluster": "broker_sim.cluster.virtual_cluster",
}


def __getattr__(name: str) -> Any:
    if name == "compiled":
        return not str(import_module("broker_sim.runtime.process").__file__).endswith(".py")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
