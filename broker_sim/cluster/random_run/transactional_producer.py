"""Transactional producers of a random run: they consume, transform and produce, and fence each other.

Each reads the committed offset of its group, writes to several partitions and commits the next offset
in one transaction, or aborts it. At random it is silent for longer than its timeout, dies, or goes on
although it was fenced. What it may rely on is checked by `TransactionHistory`.

A request that was not answered may still arrive, as long as its connection was only cut. With
`transaction.version` 1 nothing tells it from one of the next transaction, so the producer asks for a
new epoch after a transaction with such a request; version 2 does that for all (KIP-890).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.random_run.client import TIMEOUTS_MS
from broker_sim.cluster.random_run.fenced_producer import LONGEST_ABSENCE_MS, FencedProducer
from broker_sim.cluster.random_run.history import Acknowledged
from broker_sim.cluster.random_run.schedule import ACKS_ALL
from broker_sim.cluster.random_run.transaction_history import OffsetStep, Outcome
from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.random_run.surroundings import Surroundings
    from broker_sim.cluster.random_run.transaction_history import Transaction, TransactionHistory

__all__ = ["LONGEST_TIMEOUT_MS", "TransactionalProducer"]

TRANSACTION_TIMEOUTS_MS: Final = (300, 1_500, 1_500)
LONGEST_TIMEOUT_MS: Final = max(TRANSACTION_TIMEOUTS_MS)
MOST_WRITES: Final = 4
COMMITS_OFFSETS_SHARE: Final = 0.5
ABORTS_SHARE: Final = 0.25
BEGINS_ANEW_SHARE: Final = 0.1
DIES_SHARE: Final = 0.01
STALLS_SHARE: Final = 0.01
GIVES_UP_SHARE: Final = 0.15
HANGS_UP_SHARE: Final = 0.05
ZOMBIE_SHARE: Final = 0.6

FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
WRONG_COORDINATOR: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)
RETRIABLE: Final = WRONG_COORDINATOR | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NETWORK_EXCEPTION,
}
"""After these the same request is sent again; it may have had its effect already."""


class TransactionalProducer(FencedProducer):
    """One producer; `_next` does whatever comes next for it, one request at a time."""

    def __init__(
        self, around: Surroundings, history: TransactionHistory, number: int, id_number: int
    ) -> None:
        super().__init__(around, history, number, id_number)
        self._transaction: Transaction | None = None
        self._todo: list[Callable[[], None]] = []
        self._known: set[int | str] = set()
        """Partitions and groups that the coordinator has added to the transaction, in version 1."""
        self._commits_twice = False
        """Whether a commit before the last one may have had its effect."""
        self._stays_alive = False

    @property
    def has_begun(self) -> bool:
        """Whether it has done what `finish` asks for."""
        return self._next == self._begin

    def finish(self) -> None:
        """Begin anew, once, whatever is open: that ends the last transaction of the id."""
        self._stays_alive = True
        self._transaction = None
        self._next = self._init
        self._wake()

    def _send_next(self) -> None:
        if self._around.running or (self._stays_alive and not self.has_begun):
            self._next()

    def _took_error(self, error_code: int, key: str | None = None) -> bool:
        """Do what an error asks for; returns whether there is one."""
        self._around.cluster.trace.record(self._name, error_code, self._requests.epoch)
        if not error_code:
            return False
        if error_code in RETRIABLE:
            self._is_unsure = True
            if key is not None and error_code in WRONG_COORDINATOR:
                self._forget(key)
        elif error_code in FENCED:
            self._history.fenced += 1
            self._give_transaction_up()
            goes_on = self._begun_epoch >= 0 and self._chance.random() < ZOMBIE_SHARE
            self._next = self._haunt if goes_on else self._init
        else:
            self._abort_or_begin_anew()
        return True

    # -- beginning ------------------------------------------------------------------------------------

    def _init(self) -> None:
        timeout_ms = self._chance.choice(TRANSACTION_TIMEOUTS_MS)
        keeps_id = self._begun_epoch >= 0 and self._chance.random() < 0.5
        self._ask(
            self._transactional_id,
            self._requests.init_producer_id(timeout_ms, keeps_id=keeps_id),
            self._take_init,
        )

    def _take_init(self, response: Any) -> None:
        code = response.error_code
        if code in FENCED:
            # It asked for the next epoch of one that is not the newest any more.
            self._begun_epoch = -1
        if self._took_error(code, self._transactional_id):
            return
        self._history.add_producer(
            self._transactional_id, response.producer_id, response.producer_epoch
        )
        self._begun_epoch = response.producer_epoch
        self._take_epoch(response)
        self._next = self._begin

    def _take_epoch(self, response: Any) -> None:
        self._requests.take_epoch(response.producer_id, response.producer_epoch)
        self._sequences.clear()

    def _begin(self) -> None:
        """Begin a transaction: find the group's offset, if it is to go on, and plan what is written."""
        if self._chance.random() < BEGINS_ANEW_SHARE:
            self._next = self._init
            self._rest(LONGEST_ABSENCE_MS)
            return
        self._transaction = self._history.begin(self._transactional_id, self._name)
        self._known.clear()
        self._is_unsure = self._commits_twice = False
        partitions = range(self._around.schedule.partitions)
        self._todo = [
            partial(self._plan_write, self._chance.choice(partitions))
            for _ in range(self._chance.randint(1, MOST_WRITES))
        ]
        if self._chance.random() < COMMITS_OFFSETS_SHARE:
            offset_of = self._chance.choice(partitions)
            self._todo.insert(0, partial(self._fetch_offset, offset_of))
        self._next = self._work
        self._work()

    def _work(self) -> None:
        """Do the next thing of the transaction, or nothing, or die."""
        chance = self._chance.random()
        if chance < DIES_SHARE:
            self._die()
            self._rest(LONGEST_ABSENCE_MS)
        elif chance < DIES_SHARE + STALLS_SHARE:
            self._rest(LONGEST_ABSENCE_MS)
        elif chance < DIES_SHARE + STALLS_SHARE + GIVES_UP_SHARE and self._is_unsure:
            self._next = partial(self._end, is_commit=False)
            self._next()
        elif self._todo:
            self._todo[0]()
        else:
            self._next = partial(self._end, is_commit=self._chance.random() >= ABORTS_SHARE)
            self._next()

    def _die(self) -> None:
        for broker_id in range(1, self._around.schedule.brokers + 1):
            self._client.disconnect(broker_id)
        self._give_transaction_up()
        self._next = self._init

    # -- writing --------------------------------------------------------------------------------------

    def _plan_write(self, number: int) -> None:
        """Make the batch that is sent from now on until it is acknowledged."""
        transaction = self._open
        count = sum(map(len, transaction.written.values()))
        values = [
            b"%s/%d/%d" % (self._name.encode(), transaction.number, count + index)
            for index in range(self._chance.randint(1, 2))
        ]
        for value in values:
            self._history.add_value(transaction, value)
        now_ms = self._around.cluster.scheduler.clock.wall_clock_ms()
        batch = self._requests.batch(values, self._sequences.get(number, 0), now_ms)
        self._todo[0] = partial(self._write, number, values, batch)
        self._todo[0]()

    @property
    def _open(self) -> Transaction:
        assert self._transaction is not None
        return self._transaction

    def _write(self, number: int, values: list[bytes], batch: bytes) -> None:
        if self._must_add(number):
            self._add(number, self._requests.add_partition(number))
            return
        transaction, was_replaced = self._open, self._is_replaced
        leader, epoch = self._leader(number)
        asked = self._around.broker(leader)

        def lost() -> None:
            self._leaders.pop(number, None)

        def take(response: Any) -> None:
            answer = response.responses[0].partition_responses[0]
            if self._took_error(answer.error_code):
                lost()
                return
            self._check_not_replaced(was_replaced, "a write")
            first = Acknowledged(number, answer.base_offset, values[0], ACKS_ALL, epoch)
            self._around.add_acknowledged(first, values, leader, asked)
            transaction.written[number] += values
            self._sequences[number] = self._sequences.get(number, 0) + len(values)
            del self._todo[0]

        timeout_ms = self._chance.choice(TIMEOUTS_MS)
        self._exchange(leader, self._requests.produce(number, batch, timeout_ms), take, lost, 90)

    def _must_add(self, what: int | str) -> bool:
        return self._requests.version < 2 and what not in self._known

    def _add(self, what: int | str, request: tuple[Any, int]) -> None:
        """Tell the coordinator what the transaction writes to, as before version 2."""
        was_replaced = self._is_replaced

        def take(response: Any) -> None:
            if not self._took_error(
                self._requests.error_of_added(response), self._transactional_id
            ):
                self._check_not_replaced(was_replaced, "a new partition")
                self._known.add(what)

        self._ask(self._transactional_id, request, take)

    # -- offsets --------------------------------------------------------------------------------------

    def _fetch_offset(self, number: int) -> None:
        asked = self._newest_coordinator()

        def take(response: Any) -> None:
            (group,) = response.groups
            code = group.error_code or group.topics[0].partitions[0].error_code
            if self._took_error(code, self._group):
                return
            if asked is None or asked != self._newest_coordinator():
                self._forget(self._group)
                return
            offset = max(group.topics[0].partitions[0].committed_offset, 0)
            if not self._is_replaced:
                self._history.check_offset(self._transactional_id, number, offset)
            step = OffsetStep(number, offset, offset + self._chance.randint(1, 9))
            self._todo[0] = partial(self._commit_offset, step)

        self._ask(self._group, self._requests.fetch_offset(self._group, number), take)

    def _commit_offset(self, step: OffsetStep) -> None:
        if self._must_add(self._group):
            self._add(self._group, self._requests.add_group(self._group))
            return
        transaction, was_replaced = self._open, self._is_replaced

        def take(response: Any) -> None:
            if not self._took_error(response.topics[0].partitions[0].error_code, self._group):
                self._check_not_replaced(was_replaced, "an offset")
                transaction.step = step
                del self._todo[0]

        request = self._requests.commit_offset(self._group, step.partition, step.end)
        self._ask(self._group, request, take)

    # -- the end --------------------------------------------------------------------------------------

    def _abort_or_begin_anew(self) -> None:
        transaction = self._transaction
        if transaction is not None and transaction.outcome is Outcome.OPEN:
            self._is_unsure = True
            self._next = partial(self._end, is_commit=False)
        else:
            self._give_transaction_up()
            self._next = self._init

    def _give_transaction_up(self) -> None:
        """Note what is known of the transaction of a producer that ends."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        if transaction.outcome is Outcome.ENDING and self._commits_twice:
            transaction.outcome = Outcome.IN_DOUBT
        else:
            transaction.outcome = Outcome.ABORTED

    def _end(self, *, is_commit: bool) -> None:
        """Commit or abort, again and again until the coordinator has decided."""
        transaction, was_replaced = self._open, self._is_replaced
        if not is_commit and self._requests.version < 2 and not self._known:
            # Nothing was added, so there is nothing to abort; the next epoch ends what nobody knows of.
            self._give_transaction_up()
            self._next = self._init
            self._rest(30)
            return
        if is_commit:
            transaction.outcome = Outcome.ENDING
        key = self._transactional_id
        coordinator = self._coordinators.get(key)
        if coordinator is None:
            self._find_coordinator(key)
            return
        hangs_up = self._chance.random() < HANGS_UP_SHARE
        if hangs_up:
            self._around.cluster.scheduler.call_later(
                self._chance.randint(0, 20), self._client.disconnect, coordinator
            )

        def take(response: Any) -> None:
            self._take_end(response, transaction, is_commit, was_replaced)

        def lost() -> None:
            self._commits_twice = True
            self._forget(key)
            if hangs_up:
                self._die()

        self._exchange(coordinator, self._requests.end(is_commit=is_commit), take, lost, 90)

    def _take_end(
        self, response: Any, transaction: Transaction, is_commit: bool, was_replaced: bool
    ) -> None:
        code = response.error_code
        if code in RETRIABLE:
            self._commits_twice = True
        elif code and not is_commit:
            # Another one has ended it.
            transaction.outcome = Outcome.ABORTED
        if self._took_error(code, self._transactional_id):
            return
        self._check_not_replaced(was_replaced, "the end of its transaction")
        transaction.outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
        self._transaction = None
        if self._requests.version >= 2:
            self._take_epoch(response)
        is_next_safe = self._requests.version >= 2 or not self._is_unsure
        self._next = self._begin if is_next_safe else self._init
