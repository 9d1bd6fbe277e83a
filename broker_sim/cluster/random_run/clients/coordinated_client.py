"""A client that asks coordinators: it finds them, forgets them, and repeats what they have not answered."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from broker_sim.cluster.random_run.clients.client import Client
from broker_sim.handlers.groups.find_coordinator import GROUP, TRANSACTION
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker_sim.cluster.random_run.clients.surroundings import Surroundings

__all__ = ["AgainError", "CoordinatedClient", "Request", "StepError"]

T = TypeVar("T")

Request = tuple[Any, int]
"""A message and the version in which it is sent."""

FIND_COORDINATOR_VERSION: Final = 6
SHORT_REST_MS: Final = 50


class StepError(Exception):
    """A step could not be done; what it leads to is said by its kind."""


class AgainError(StepError):
    """It has to be done again, perhaps with another broker."""


class CoordinatedClient(Client):
    """A client that takes step after step, each with a rest behind it."""

    parked_ms: ClassVar[int]
    """How long a request may be parked."""
    find_parked_ms: ClassVar = 0

    def __init__(
        self, around: Surroundings, name: str, chance: str, transactional_id: str = ""
    ) -> None:
        super().__init__(around, name)
        self._transactional_id = transactional_id
        self._chance = random.Random(f"{around.schedule.seed}/{chance}")
        """Decides what it does."""
        self._coordinators: dict[str, int] = {}
        """Those that it knows, by group or transactional id."""
        self._is_unsure = False
        """Whether a request got no answer, so that it may have had its effect."""
        self._rest_ms = SHORT_REST_MS
        """How long it rests at most after the step that it is taking."""

    async def _repeat(
        self,
        step: Callable[[], Awaitable[T]],
        then: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Take a step again and again until it is done, with `then` behind each attempt; return its result."""
        while True:
            is_done = True
            try:
                result = await step()
            except AgainError:
                is_done = False
            await self._rest(self._rest_ms)
            if then is not None:
                await then()
            if is_done:
                return result

    async def _ask(
        self,
        broker_id: int,
        request: Request,
        rest_ms: int = SHORT_REST_MS,
        parked_ms: int | None = None,
    ) -> Any:
        """Return a broker's response. Raises AgainError if there is none."""
        self._rest_ms = rest_ms
        pending = await self._send(
            broker_id, *request, self.parked_ms if parked_ms is None else parked_ms
        )
        if pending.disconnected:
            self._is_unsure = True
            raise AgainError
        return pending.response

    async def _ask_coordinator(
        self, key: str, request: Request, rest_ms: int = SHORT_REST_MS
    ) -> Any:
        """Do the same with the coordinator of a group or a transactional id, which is then found first."""
        coordinator = self._coordinators.get(key)
        if coordinator is None:
            await self._find_coordinator(key)
            raise AgainError
        try:
            return await self._ask(coordinator, request, rest_ms)
        except AgainError:
            self._forget(key)
            raise

    def _forget(self, key: str) -> None:
        self._coordinators.pop(key, None)

    async def _find_coordinator(self, key: str) -> None:
        kind = TRANSACTION if key == self._transactional_id else GROUP
        broker_id = self._chance.randint(1, self._around.schedule.brokers)
        request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        response = await self._ask(
            broker_id, (request, FIND_COORDINATOR_VERSION), parked_ms=self.find_parked_ms
        )
        (found,) = response.coordinators
        if not found.error_code:
            self._coordinators[key] = found.node_id
