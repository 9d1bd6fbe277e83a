"""What can be done to a broker, on either side: the one list of verbs of the comparison.

The real clusters of `broker_sim_integration.reference` and the simulator's `broker_sim.Cluster` both have
these methods, so that nothing has to translate between them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Fault(StrEnum):
    """What can be done to a broker; a scenario names the faults that it needs."""

    PAUSE = "pause"
    STOP = "stop"
    KILL = "kill"
    DISCONNECT = "disconnect"
    DISCONNECT_CLIENTS = "disconnect clients"


class Reading(StrEnum):
    """What can be read of a broker beside its responses; a scenario names what it needs."""

    PURGES = "purges"


class BrokerVerbs(Protocol):
    """The faults of a broker and how each of them ends. Only one thread may call them."""

    def pause(self, broker: int, /) -> None:
        """Stop a broker where it is: it reads no socket and sends no heartbeat."""

    def resume(self, broker: int, /) -> None:
        """Let a paused broker continue from where it was."""

    def stop(self, broker: int, /) -> None:
        """Stop a broker by a controlled shutdown (SIGTERM) and wait until its process has ended."""

    def kill(self, broker: int, /) -> None:
        """Kill a broker process (SIGKILL). Its logs survive."""

    def start(self, broker: int, /, *, wait: bool = True) -> None:
        """Start a broker that was stopped or killed on its old logs and port.

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
