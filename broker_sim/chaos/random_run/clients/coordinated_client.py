"""A client of coordinators: it finds them, forgets them after errors, and repeats unanswered requests."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from broker_sim.chaos.random_run.checks.coordinators import newest_coordinator
from broker_sim.chaos.random_run.clients.client import Client
from broker_sim.handlers.groups.find_coordinator import GROUP, TRANSACTION
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker_sim.chaos.random_run.clients.shared_state import SharedState
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

T = TypeVar("T")

SHORT_REST_MS: Final = 50


class StepError(Exception):
    """A step has failed; subclasses say what to do next."""


class AgainError(StepError):
    """The step has to be repeated, perhaps with another broker."""


class CoordinatedClient(Client):
    """A client that takes step after step, with a rest after each."""

    parked_ms: ClassVar[int]
    """Maximum time that a request is parked."""
    find_parked_ms: ClassVar = 0
    short_rest_ms: ClassVar = SHORT_REST_MS
    """Maximum rest after most requests."""

    def __init__(self, shared: SharedState, name: str, chance: str) -> None:
        super().__init__(shared, name)
        self._transactional_id = ""
        self._chance = random.Random(f"{shared.schedule.seed}/{chance}")
        """Random stream of its decisions."""
        self._coordinators: dict[str, int] = {}
        """Coordinators by group or transactional id."""
        self._is_unsure = False
        """Whether a request got no response, so that it may have taken effect."""
        self._rest_ms = SHORT_REST_MS
        """Maximum rest after the current step."""

    def _is_drawn(self, share: float) -> bool:
        return self._chance.random() < share

    async def _repeat(self, step: Callable[[], Awaitable[T]], then: Callable[[], Awaitable[None]] | None = None) -> T:
        """Repeat a step until it succeeds, with `then` after each attempt; return its result."""
        while True:
            try:
                result, is_done = await step(), True
            except AgainError:
                is_done = False
            await self._rest(self._rest_ms)
            if then is not None:
                await then()
            if is_done:
                return result

    async def _ask(self, broker_id: int, message: Any, rest_ms: int, parked_ms: int) -> Any:
        """Return a broker's response. Raises AgainError if there is none."""
        self._rest_ms = rest_ms
        pending = await self._send(broker_id, message, parked_ms)
        if pending.disconnected:
            self._is_unsure = True
            raise AgainError
        return pending.response

    async def _ask_coordinator(self, key: str, message: Any, rest_ms: int | None = None) -> Any:
        """Return the response of the coordinator of a group or a transactional id.

        Raises AgainError if there is none.
        """
        coordinator = await self._coordinator(key)
        try:
            return await self._ask(coordinator, message, rest_ms or self.short_rest_ms, self.parked_ms)
        except AgainError:
            self._forget(key)
            raise

    async def _ask_newest(
        self, key: str, message: Any, look: Callable[[VirtualCluster, int], object] = newest_coordinator
    ) -> tuple[Any, bool]:
        """Return the response, and whether `look` returns the same coordinator before and after it."""
        cluster, coordinator = self._shared.cluster, self._coordinators.get(key, -1)
        before = look(cluster, coordinator)
        response = await self._ask_coordinator(key, message)
        return response, before is not None and before == look(cluster, coordinator)

    async def _coordinator(self, key: str) -> int:
        """Return the known coordinator; otherwise look it up and raise AgainError."""
        broker_id = self._coordinators.get(key)
        if broker_id is not None:
            return broker_id
        request = messages.FindCoordinatorRequest(
            key_type=TRANSACTION if key == self._transactional_id else GROUP, coordinator_keys=[key]
        )
        broker_id = self._chance.randint(1, self._shared.schedule.brokers)
        response = await self._ask(broker_id, request, SHORT_REST_MS, self.find_parked_ms)
        (coordinator,) = response.coordinators
        if not coordinator.error_code:
            self._coordinators[key] = coordinator.node_id
        raise AgainError

    def _forget(self, key: str) -> None:
        self._coordinators.pop(key, None)
