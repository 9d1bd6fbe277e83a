"""Ports on 127.0.0.1 that no other program gets while a broker is down."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from broker_sim_integration.reference.errors import ReferenceUnavailableError

# Below the kernel's range for outgoing connections: a client that keeps connecting to the port of a
# killed broker could otherwise get this port itself and be connected to itself.
FIRST_PORT = 20_000
LAST_PORT = 31_999


def free_ports(count: int, chance: random.Random | None = None) -> list[int]:
    """Return `count` different ports of 127.0.0.1 on which no program listens now.

    The search starts at a random port from `chance`, so that concurrent callers get different ports. Raise
    `ReferenceUnavailableError` if there are not enough.
    """
    span = LAST_PORT - FIRST_PORT + 1
    start = (chance or random.SystemRandom()).randrange(span)
    ports: list[int] = []
    with ExitStack() as held:
        for step in range(span):
            port = FIRST_PORT + (start + step) % span
            attempt = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise ReferenceUnavailableError(
        f"fewer than {count} free ports between {FIRST_PORT} and {LAST_PORT}; end the programs that use them"
    )
