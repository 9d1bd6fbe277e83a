"""A side of the fuzzing: three running brokers, real or simulated, and their verbs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_sim_integration.cluster_under_test.brokers import Brokers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker_sim_integration.cluster_under_test.running_cluster import RunningCluster


@dataclass(frozen=True, slots=True)
class FuzzedSide:
    """Three brokers by role, and their verbs."""

    name: str
    brokers: Brokers
    verb: Callable[[str, int], Awaitable[object]]
    """Calls a verb of `BrokerVerbs` for a broker."""
    is_ours: bool = True
    """Whether the cluster ends with the run; otherwise topics are deleted."""

    def broker(self, role: str) -> int:
        """Return a broker's id by its role."""
        number: int = getattr(self.brokers, role)
        return number


def fuzzed_side(name: str, running: RunningCluster, first: int | None = None) -> FuzzedSide:
    """Return the side of a running cluster; its verbs are called on a thread, one at a time.

    `first` is the id of the first broker, so that it can be the same on both sides: messages contain it.
    """
    lock = asyncio.Lock()

    async def verb(name: str, broker: int) -> None:
        async with lock:
            await asyncio.to_thread(getattr(running.verbs, name), broker)

    brokers = Brokers.of(running.addresses, first or running.controller_broker())
    return FuzzedSide(name, brokers, verb, running.is_ours)
