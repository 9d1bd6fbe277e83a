"""What transactional producers of a random run are made of: their coordinators, and life after they were fenced."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.invariants import violated
from broker_sim.cluster.random_run.clients import ClientLoop
from broker_sim.cluster.random_run.coordinators import newest_coordinator
from broker_sim.cluster.random_run.transaction_history import group_of
from broker_sim.cluster.random_run.transactional_requests import TransactionalRequests

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.random_run.surroundings import Surroundings
    from broker_sim.cluster.random_run.transaction_history import TransactionHistory
    from broker_sim.cluster.virtual_client import PendingResponse

__all__ = ["LONGEST_ABSENCE_MS", "LONGEST_PARKED_MS", "FencedProducer"]

LONGEST_ABSENCE_MS: Final = 2_000
LONGEST_PARKED_MS: Final = 1_500
LONGEST_HAUNT: Final = 4
ZOMBIE_OFFSET: Final = 1_000_000
"""No transaction commits it."""


class FencedProducer(ClientLoop):
    """A producer that may have been fenced; `_next` does whatever comes next for it."""

    def __init__(
        self, around: Surroundings, history: TransactionHistory, number: int, id_number: int
    ) -> None:
        super().__init__(around, f"transactional-{number}")
        self._history = history
        self._transactional_id = f"id-{id_number}"
        self._group = group_of(self._transactional_id)
        self._chance = random.Random(f"{around.schedule.seed}/transactional/{number}")
        self._requests = TransactionalRequests(
            self._transactional_id, around.schedule.transaction_version
        )
        self._coordinators: dict[str, int] = {}
        self._begun_epoch = -1
        """The epoch that InitProducerId has answered; later ones are of its own transactions."""
        self._sequences: dict[int, int] = {}
        self._is_unsure = False
        """Whether a request of the transaction has got no answer, or one that leaves it open."""
        self._next: Callable[[], None] = self._init

    def _init(self) -> None:
        raise NotImplementedError

    # -- requests -----------------------------------------------------------------------------------

    def _ask(
        self, key: str, request: tuple[Any, int], take: Callable[[Any], None], *, wait_ms: int = 30
    ) -> None:
        """Ask the coordinator of a group, or of transactions; go on a little later."""
        coordinator = self._coordinators.get(key)
        if coordinator is None:
            self._find_coordinator(key)
            return
        self._exchange(coordinator, request, take, lambda: self._forget(key), wait_ms)

    def _exchange(
        self,
        broker_id: int,
        request: tuple[Any, int],
        take: Callable[[Any], None],
        on_lost: Callable[[], object],
        wait_ms: int,
    ) -> None:
        def done(pending: PendingResponse) -> None:
            if pending.disconnected:
                self._is_unsure = True
                on_lost()
            else:
                take(pending.response)
            self._rest(wait_ms)

        self._send(broker_id, *request, LONGEST_PARKED_MS, done)

    def _forget(self, key: str) -> None:
        self._coordinators.pop(key, None)

    def _find_coordinator(self, key: str) -> None:
        def take(response: Any) -> None:
            (found,) = response.coordinators
            if not found.error_code:
                self._coordinators[key] = found.node_id

        broker_id = self._chance.randint(1, self._around.schedule.brokers)
        request = self._requests.find_coordinator(key)
        self._exchange(broker_id, request, take, lambda: None, 50)

    def _newest_coordinator(self) -> tuple[int, int] | None:
        """Return the group's coordinator and its epoch; None if that one may be deposed.

        A member of a group would learn that from its generation; this producer has none, so what such a
        coordinator tells does not count.
        """
        broker_id = self._coordinators.get(self._group, -1)
        return newest_coordinator(self._around.cluster, broker_id)

    # -- after it was fenced ---------------------------------------------------------------------------

    def _haunt(self) -> None:
        """Go on as if nothing had been: write, commit an offset, or commit what it was fenced in."""
        if self._chance.random() < 1 / LONGEST_HAUNT:
            self._next = self._init
            self._rest(LONGEST_ABSENCE_MS)
            return
        was_replaced = self._is_replaced

        def check(error_code: int, what: str) -> None:
            self._around.cluster.trace.record(self._name, what, error_code)
            self._check_not_replaced(was_replaced and not error_code, what)

        kind = self._chance.choice(("write", "offset", "commit"))
        if kind == "write":
            self._haunt_partition(check)
        elif kind == "offset":
            request = self._requests.commit_offset(self._group, 0, ZOMBIE_OFFSET)
            self._ask(
                self._group,
                request,
                lambda response: check(response.topics[0].partitions[0].error_code, "an offset"),
            )
        elif was_replaced:
            self._ask(
                self._transactional_id,
                self._requests.end(is_commit=True),
                lambda response: check(response.error_code, "a commit"),
            )
        else:
            # Not replaced, but timed out: what tells it so may not be written yet.
            self._rest(50)

    def _haunt_partition(self, check: Callable[[int, str], None]) -> None:
        number = self._chance.randrange(self._around.schedule.partitions)
        transaction = self._history.add_zombie(self._transactional_id, self._name)
        value = b"%s/zombie/%d" % (self._name.encode(), transaction.number)
        self._history.add_value(transaction, value)
        now_ms = self._around.cluster.scheduler.clock.wall_clock_ms()
        batch = self._requests.batch([value], self._sequences.get(number, 0), now_ms)
        leader, _ = self._leader(number)
        self._exchange(
            leader,
            self._requests.produce(number, batch, LONGEST_PARKED_MS),
            lambda response: check(
                response.responses[0].partition_responses[0].error_code, "a write"
            ),
            lambda: self._leaders.pop(number, None),
            60,
        )

    def _check_not_replaced(self, was_replaced: bool, what: str) -> None:
        if was_replaced:
            violated(
                "fenced-producers-stay-fenced",
                f"{self._name} was replaced before it asked for {what}, which has succeeded",
            )

    @property
    def _is_replaced(self) -> bool:
        return self._history.is_replaced(self._transactional_id, self._begun_epoch)
