"""The table on a real broker: one KRaft node in a container."""

from __future__ import annotations

import asyncio
from typing import Any

from broker_sim_integration.logins.configs import ADMIN, CONFIGS, LISTENERS
from broker_sim_integration.logins.play import earliest, play
from broker_sim_integration.reference.clusters.single_node import single_node

OWN = "OWN"
PLAYS = 3


def play_on_real() -> dict[str, list[Any]]:
    """Return the outcomes by case."""
    protocols = {"CONTROLLER": "PLAINTEXT", ADMIN: "PLAINTEXT", OWN: "PLAINTEXT"}
    protocols |= dict.fromkeys(LISTENERS, "SASL_PLAINTEXT")
    with single_node(protocols, ADMIN, OWN, CONFIGS) as node:
        addresses = {name: ("127.0.0.1", port) for name, port in node.ports.items()}
        # Much of a JVM is slow the first time, and a busy machine is slow at any time.
        return earliest([asyncio.run(play(addresses)) for _ in range(PLAYS)])
