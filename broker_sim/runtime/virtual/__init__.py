"""The virtual runtime: a deterministic asyncio event loop in virtual time, and its TCP network."""

from broker_sim.runtime.virtual.core.clock import LoopClock
from broker_sim.runtime.virtual.core.errors import (
    EscapeError,
    UnhandledError,
    VirtualDeadlockError,
    VirtualLivelockError,
    VirtualRunError,
    VirtualTimeLimitError,
)
from broker_sim.runtime.virtual.core.trace import LoopTrace
from broker_sim.runtime.virtual.loop import Order, VirtualEventLoop
from broker_sim.runtime.virtual.network import ANY, BoundPort, Latency, MemoryTransport, Network
from broker_sim.runtime.virtual.run import VirtualRun, garbage_of_one_run, run
from broker_sim.runtime.virtual.stdlib import (
    install,
    pin_hash_seed,
    pinned_hash_seed,
    uninstall,
)

__all__ = [
    "ANY",
    "BoundPort",
    "EscapeError",
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
    "VirtualRun",
    "VirtualRunError",
    "VirtualTimeLimitError",
    "garbage_of_one_run",
    "install",
    "pin_hash_seed",
    "pinned_hash_seed",
    "run",
    "uninstall",
]
