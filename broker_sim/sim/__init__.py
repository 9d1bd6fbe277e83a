"""The cluster in virtual time: deterministic, seeded, checked after every step."""

from broker_sim.sim.invariants import InvariantViolationError
from broker_sim.sim.random_run import RandomRun, RunSummary
from broker_sim.sim.requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    fetch_request,
    produce_request,
)
from broker_sim.sim.virtual_client import PendingResponse, VirtualClient
from broker_sim.sim.virtual_cluster import SimulationError, VirtualCluster

__all__ = [
    "FETCH_VERSION",
    "PRODUCE_VERSION",
    "InvariantViolationError",
    "PendingResponse",
    "RandomRun",
    "RunSummary",
    "SimulationError",
    "VirtualClient",
    "VirtualCluster",
    "fetch_request",
    "produce_request",
]
