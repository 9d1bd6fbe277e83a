"""The table on a simulated broker, in virtual time."""

from __future__ import annotations

from typing import Any

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim_integration.telemetry.table import CONFIGS, play


def play_on_simulated(case: str) -> list[Any]:
    """Return the observations of the case."""
    with VirtualCluster(1, configs=CONFIGS, as_version="4.4") as cluster:
        address = cluster.inside.listeners.addresses_of("PLAINTEXT")[1]
        return cluster.wait_for(play(address, case))
