"""The table on a simulated broker, in virtual time."""

from __future__ import annotations

from typing import Any

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim_integration.logins.configs import ADMIN, CONFIGS, LISTENERS
from broker_sim_integration.logins.play import play


def play_on_simulated(as_version: str | None = None) -> dict[str, list[Any]]:
    """Return the outcomes on a broker of release `as_version`, by case."""
    names = ADMIN, *LISTENERS
    protocols = [f"{ADMIN}:PLAINTEXT", *(f"{name}:SASL_PLAINTEXT" for name in LISTENERS)]
    configs = {**CONFIGS, "listener.security.protocol.map": ",".join(protocols)}
    text = ",".join(f"{name}://127.0.0.1:0" for name in names)
    with VirtualCluster(1, listeners=text, configs=configs, as_version=as_version) as cluster:
        addresses = {name: cluster.inside.listeners.addresses_of(name)[1] for name in names}
        return cluster.wait_for(play(addresses))
