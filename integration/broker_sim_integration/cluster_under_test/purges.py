"""Number of completed operations that a broker's purgatories have purged from their watch lists.

Kafka logs it at level DEBUG; the simulator has it in its status.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.admin_requests import BROKER_LOGGER, SET, alter

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from broker_sim_integration.cluster_under_test.clients import Clients

LOGGER: Final = "org.apache.kafka.server.purgatory.DelayedOperationPurgatory"
LOGGED: Final = re.compile(r"Purged (\d+) elements from watch lists")


class Purges:
    """Counts purged operations while a scenario runs."""

    def __init__(self, purged: Callable[[int], int], clients: Clients, cleanup: ExitStack) -> None:
        self._purged = purged
        self._clients = clients
        self._cleanup = cleanup

    def counted_of(self, broker: int) -> Callable[[], int]:
        """Return a function that returns the number of operations purged by a broker since now."""
        self._set_level(broker, "DEBUG")
        self._cleanup.callback(self._set_level, broker, "INFO")
        before = self._purged(broker)
        return lambda: self._purged(broker) - before

    def _set_level(self, broker: int, level: str) -> None:
        change = (BROKER_LOGGER, str(broker), [(LOGGER, SET, level)])
        alter(self._clients.ask(broker), change)


def purged_in_log(log: str) -> int:
    """Return the number of purged operations in the log of a real broker."""
    return sum(int(count) for count in LOGGED.findall(log))
