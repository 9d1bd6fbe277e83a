"""Producers and consumers of a random run; each has random numbers of its own.

A client keeps the leader that it knows until a broker refuses it, does not answer, or is gone, as
real clients do. So after a failover it may speak to the old leader.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.invariants import violated

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker_sim.cluster.random_run.surroundings import Surroundings
    from broker_sim.cluster.virtual_client import PendingResponse

__all__ = ["ClientLoop"]

ANSWER_SLACK_MS: Final = 1_000
"""How much longer than a broker may take a client waits before it breaks the connection off."""

REFRESH_SHARE: Final = 0.1
"""How often a client asks for the leader although nothing has refused it: its metadata gets old."""


class ClientLoop:
    """Sends one request after the other."""

    def __init__(self, around: Surroundings, name: str) -> None:
        self._around = around
        self._name = name
        self._rng = random.Random(f"{around.schedule.seed}/{name}")
        self._client = around.cluster.client()
        self._leaders: dict[int, tuple[int, int]] = {}
        """The leader of each partition and its epoch, as this client knows them."""
        self._resting: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to send."""
        self._send_next()

    def _send_next(self) -> None:
        raise NotImplementedError

    def _rest(self, longest_ms: int) -> None:
        delay_ms = self._rng.randint(1, longest_ms)
        self._resting = self._around.cluster.scheduler.call_later(delay_ms, self._send_next)

    def _wake(self) -> None:
        """Go on now; nothing must be on its way to a broker."""
        if self._resting is not None:
            self._resting.cancel()
        self._send_next()

    def _leader(self, partition: int) -> tuple[int, int]:
        """Return the leader and its epoch; any broker, and -1 for the epoch, without one."""
        known = self._leaders.get(partition)
        if known is None or self._rng.random() < REFRESH_SHARE:
            known = self._around.newest_leader(partition)
            if known[0] < 0:
                self._leaders.pop(partition, None)
                return self._rng.randint(1, self._around.schedule.brokers), -1
            self._leaders[partition] = known
        return known

    def _send(
        self,
        broker_id: int,
        message: Any,
        version: int,
        timeout_ms: int,
        on_done: Callable[[PendingResponse], None],
    ) -> None:
        def done(pending: PendingResponse) -> None:
            timer.cancel()
            self._around.waiting -= 1
            on_done(pending)

        timer = self._around.cluster.scheduler.call_later(
            timeout_ms + ANSWER_SLACK_MS, lambda: self._give_up(broker_id, pending)
        )
        self._around.waiting += 1
        pending = self._client.send(broker_id, message, version, done)

    def _give_up(self, broker_id: int, pending: PendingResponse) -> None:
        quiet_since_ms = self._around.quiet_since_ms()
        if quiet_since_ms is not None and quiet_since_ms <= pending.sent_ms:
            violated(
                "requests-are-answered",
                f"{self._name} waits since {pending.sent_ms} ms for broker {broker_id} to answer "
                f"{pending.api_key.name}",
            )
        self._around.history.count("abandoned")
        self._client.disconnect(broker_id)
