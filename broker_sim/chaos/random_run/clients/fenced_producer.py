"""A producer that was fenced and does not know it: its requests must be refused."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.checks.transaction_history import group_of
from broker_sim.chaos.random_run.clients.coordinated_client import AgainError, CoordinatedClient
from broker_sim.chaos.random_run.clients.transactional_requests import TransactionalRequests
from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.chaos.random_run.clients.shared_state import SharedState

LONGEST_ABSENCE_MS: Final = 2_000
LONGEST_PARKED_MS: Final = 1_500
ZOMBIE_END_SHARE: Final = 0.25
"""Probability that a fenced producer stops before its next request."""
WRITE: Final = "a write"
OFFSET: Final = "an offset"
COMMIT: Final = "a commit"
ZOMBIE_OFFSET: Final = 1_000_000
"""An offset that no transaction commits."""


class FencedProducer(CoordinatedClient):
    """A transactional producer, which may have been fenced."""

    parked_ms = find_parked_ms = LONGEST_PARKED_MS
    short_rest_ms = 30

    def __init__(self, shared: SharedState, number: int, id_number: int) -> None:
        super().__init__(shared, f"transactional-{number}", f"transactional/{number}")
        version = shared.schedule.transaction_version
        self._transactional_id = f"id-{id_number}"
        self._requests = TransactionalRequests(self._transactional_id, version)
        self._versions = self._requests.versions
        self._history = shared.transactions
        self._group = group_of(self._transactional_id)
        self._begun_epoch = -1
        """The epoch from InitProducerId; its own transactions may have raised it since."""
        self._sequences: dict[int, int] = {}

    @property
    def _is_replaced(self) -> bool:
        return self._history.is_replaced(self._transactional_id, self._begun_epoch)

    @contextmanager
    def _fenced_if_replaced(self, what: str) -> Iterator[None]:
        """Raise if the block succeeds although another producer had started before it."""
        was_replaced = self._is_replaced
        yield
        if was_replaced:
            violated(
                "fenced-producers-stay-fenced",
                f"{self._name} was replaced before it requested {what}, which succeeded",
            )

    async def _act_as_zombie(self) -> None:
        """Continue as if not fenced: write, commit an offset, or commit the transaction it was fenced in."""
        while not self._is_drawn(ZOMBIE_END_SHARE):
            what = self._chance.choice((WRITE, OFFSET, COMMIT))
            if what == COMMIT and not self._is_replaced:
                # Its transaction has timed out, but the record of that may not be written yet.
                self._rest_ms = 50
            else:
                with suppress(AgainError), self._fenced_if_replaced(what):
                    error_code = await self._send_as_zombie(what)
                    self._record(self._name, what, error_code)
                    if error_code:
                        raise AgainError
            await self._rest(self._rest_ms)
        await self._rest(LONGEST_ABSENCE_MS)

    async def _send_as_zombie(self, what: str) -> Any:
        """Send a request as a fenced producer; return the error code of the response."""
        if what == WRITE:
            return await self._write_as_zombie()
        if what == OFFSET:
            request = self._requests.commit_offset(self._group, 0, ZOMBIE_OFFSET)
            response = await self._ask_coordinator(self._group, request)
            return response.topics[0].partitions[0].error_code
        end = self._requests.end(is_commit=True)
        return (await self._ask_coordinator(self._transactional_id, end)).error_code

    async def _write_as_zombie(self) -> Any:
        number = self._chance.randrange(self._shared.schedule.partitions)
        transaction = self._history.add_zombie(self._transactional_id, self._name)
        value = b"%s/zombie/%d" % (self._name.encode(), transaction.number)
        self._history.add_value(transaction, value)
        batch = self._batch(number, [value])
        leader, _ = self._leader(number)
        request = self._requests.produce(number, batch, LONGEST_PARKED_MS)
        try:
            response = await self._ask(leader, request, 60, LONGEST_PARKED_MS)
        except AgainError:
            self._leaders.pop(number, None)
            raise
        return response.responses[0].partition_responses[0].error_code

    def _batch(self, number: int, values: list[bytes]) -> bytes:
        """Return the next batch of a partition."""
        return self._requests.batch(values, self._sequences.get(number, 0), self._wall_clock_ms)
