"""The verbs of the comparison: everything it does to a broker, on either side.

The real clusters of `broker_sim_integration.reference` and the simulator's `broker_sim.Cluster` have
the same methods, so nothing has to be translated between them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Fault(StrEnum):
    """A fault of a broker; a scenario declares those that it needs."""

    PAUSE = "pause"
    STOP = "stop"
    KILL = "kill"
    DISCONNECT = "disconnect"
    DISCONNECT_CLIENTS = "disconnect clients"


class Reading(StrEnum):
    """A measurement of a broker other than its responses; a scenario declares those that it needs."""

    PURGES = "purges"


class BrokerVerbs(Protocol):
    """The faults of a broker and the end of each fault. Only one thread may call these methods."""

    def pause(self, broker: int, /) -> None:
        """Suspend a broker's process (SIGSTOP): it reads no socket and sends no heartbeat."""

    def resume(self, broker: int, /) -> None:
        """Resume a paused broker (SIGCONT)."""

    def stop(self, broker: int, /) -> None:
        """Stop a broker by a controlled shutdown (SIGTERM) and wait until its process has ended."""

    def kill(self, broker: int, /) -> None:
        """Kill a broker's process (SIGKILL). Its logs survive."""

    def start(self, broker: int, /, *, wait: bool = True) -> None:
        """Start a stopped or killed broker with its old logs on its old port.

        With `wait` it returns when the broker serves clients.
        """

    def disconnect(self, broker: int, /) -> None:
        """Drop all packets between a broker and the others; clients still reach it."""

    def reconnect(self, broker: int, /) -> None:
        """End `disconnect`."""

    def disconnect_clients(self, broker: int, /) -> None:
        """Drop all packets between a broker and its clients; the other brokers still reach it."""

    def reconnect_clients(self, broker: int, /) -> None:
        """End `disconnect_clients`."""
