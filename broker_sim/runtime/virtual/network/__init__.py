"""The network of a virtual loop: TCP in memory, with ports, latency and faults."""

from broker_sim.runtime.virtual.network.network import ANY, Latency, Network
from broker_sim.runtime.virtual.network.ports import BoundPort
from broker_sim.runtime.virtual.network.transport import MemoryTransport

__all__ = ["ANY", "BoundPort", "Latency", "MemoryTransport", "Network"]
