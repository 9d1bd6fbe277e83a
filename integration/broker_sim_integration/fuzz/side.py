"""A side of the fuzzing: three brokers that run, real or simulated, and the verbs that hit them."""

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
    """Three brokers by their roles, and what can be done to them."""

    name: str
    brokers: Brokers
    verb: Callable[[str, int], Awaitable[object]]
    """Does a verb of `BrokerVerbs` to a broker."""
    is_ours: bool = True
    """Whether it ends with the run; elsewhere topics are deleted."""

    def broker(self, role: str) -> int:
        """Return the number of a broker by its role."""
        number: int = getattr(self.brokers, role)
        return number


def fuzzed_side(name: str, running: RunningCluster, first: int | None = None) -> FuzzedSide:
    """Return the side of a cluster that runs; its verbs are called on a thread, one at a time.

    `first` is the number of the first broker, so that both sides can have the same: texts name it.
    """
    lock = asyncio.Lock()

    async def verb(name: str, broker: int) -> None:
        async with lock:
            await asyncio.to_thread(getattr(running.verbs, name), broker)

    brokers = Brokers.of(running.addresses, first or running.controller_broker())
    return FuzzedSide(name, brokers, verb, running.is_ours)
