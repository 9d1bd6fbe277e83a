"""The virtual runtime: a deterministic asyncio event loop in virtual time, and its TCP network."""

from broker_sim.runtime.virtual.clock import LoopClock
from broker_sim.runtime.virtual.errors import (
    EscapeError,
    HashSeedError,
    UnhandledError,
    VirtualDeadlockError,
    VirtualLivelockError,
    VirtualRunError,
    VirtualTimeLimitError,
)
from broker_sim.runtime.virtual.loop import Order, VirtualEventLoop
from broker_sim.runtime.virtual.network import ANY, Latency, Network
from broker_sim.runtime.virtual.ports import BoundPort
from broker_sim.runtime.virtual.run import run
from broker_sim.runtime.virtual.trace import LoopTrace
from broker_sim.runtime.virtual.transport import MemoryTransport

__all__ = [
    "ANY",
    "BoundPort",
    "EscapeError",
    "HashSeedError",
    "Latency",
    "LoopClock",
    "LoopTrace",
    "MemoryTransport",
    "Network",
    "Order",
    "UnhandledError",
    "VirtualDeadlockError",
    "VirtualEventLoop",
    "VirtualLivelockError",
    "VirtualRunError",
    "VirtualTimeLimitError",
    "run",
]
