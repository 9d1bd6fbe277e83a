"""Transactional producers of a random run: they consume, transform and produce, and fence each other.

Each reads the committed offset of its group, writes to several partitions and commits the next offset
in one transaction, or aborts it. At random it is silent for longer than its timeout, dies, or continues
although it was fenced. `TransactionHistory` checks what it learns.

An unanswered request may still arrive if its connection was only cut. With `transaction.version` 1 it cannot be
distinguished from a request of the next transaction, so the producer requests a new epoch after such a
transaction; version 2 does that after every transaction (KIP-890).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.checks.history import Acknowledged
from broker_sim.chaos.random_run.checks.transaction_history import OffsetStep, Outcome
from broker_sim.chaos.random_run.clients.client import TIMEOUTS_MS
from broker_sim.chaos.random_run.clients.coordinated_client import AgainError, StepError, T
from broker_sim.chaos.random_run.clients.fenced_producer import LONGEST_ABSENCE_MS, FencedProducer
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.virtual_client import offset_fetch_request
from broker_sim.errors import ErrorCode
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker_sim.chaos.random_run.checks.transaction_history import Transaction
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

TRANSACTION_TIMEOUTS_MS: Final = (300, 1_500, 1_500)
LONGEST_TIMEOUT_MS: Final = max(TRANSACTION_TIMEOUTS_MS)
MAX_WRITES: Final = 4
COMMITS_OFFSETS_SHARE: Final = 0.5
ABORTS_SHARE: Final = 0.25
BEGINS_ANEW_SHARE: Final = 0.1
DIES_SHARE: Final = 0.01
STALLS_SHARE: Final = 0.01
GIVES_UP_SHARE: Final = 0.15
HANGS_UP_SHARE: Final = 0.05
ZOMBIE_SHARE: Final = 0.6

FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
WRONG_COORDINATOR: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
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
    ErrorCode.KAFKA_STORAGE_ERROR,
}
"""Errors after which the same request is sent again; it may already have taken effect."""


class FencedError(StepError):
    """Another producer has taken over the transactional id."""


class RefusedError(StepError):
    """The transaction cannot continue."""


class _GivenUpError(Exception):
    """The producer aborts its transaction, part of which may have failed."""


class TransactionalProducer(FencedProducer):
    """One producer."""

    def __init__(self, shared: SharedState, number: int, id_number: int) -> None:
        super().__init__(shared, number, id_number)
        self.has_begun = False
        """Whether it has received an epoch since its start or since `finish`."""
        self._transaction: Transaction | None = None
        self._registered: set[int | str] = set()
        """Partitions and groups added to the transaction, in version 1."""
        self._commits_twice = False
        """Whether an earlier commit request than the last may have taken effect."""
        self._stays_alive = False

    def finish(self) -> None:
        """Start again once, which ends any open transaction of the id."""
        self._stays_alive = True
        self.has_begun = False
        self._transaction = None
        self.start()

    @property
    def _goes_on(self) -> bool:
        return self._shared.running or (self._stays_alive and not self.has_begun)

    async def _live(self) -> None:
        while True:
            try:
                await self._repeat(self._init)
                while await self._take_transaction():
                    pass
            except FencedError:
                goes_on = self._begun_epoch >= 0 and self._is_drawn(ZOMBIE_SHARE)
                await self._rest(self._rest_ms)
                if goes_on:
                    await self._act_as_zombie()
            except RefusedError:
                self._give_transaction_up()
                await self._rest(self._rest_ms)

    def _check(self, error_code: int, key: str | None = None) -> None:
        """Raise the exception that fits an error code; `key` identifies the coordinator that answered."""
        self._record(self._name, error_code, self._requests.epoch)
        if not error_code:
            return
        if error_code in RETRIABLE:
            self._is_unsure = True
            if key is not None and error_code in WRONG_COORDINATOR:
                self._forget(key)
            raise AgainError
        if error_code in FENCED:
            self._history.fenced += 1
            self._give_transaction_up()
            raise FencedError
        raise RefusedError

    # -- beginning ------------------------------------------------------------------------------------

    async def _init(self) -> None:
        timeout_ms = self._chance.choice(TRANSACTION_TIMEOUTS_MS)
        keeps_id = self._begun_epoch >= 0 and self._is_drawn(0.5)
        key = self._transactional_id
        request = self._requests.init_producer_id(timeout_ms, keeps_id=keeps_id)
        response = await self._ask_coordinator(key, request)
        if response.error_code in FENCED:
            # It requested the next epoch for an epoch that is no longer the newest.
            self._begun_epoch = -1
        self._check(response.error_code, key)
        self._history.add_producer(key, response.producer_id, response.producer_epoch)
        self._begun_epoch = response.producer_epoch
        self._take_epoch(response)
        self.has_begun = True

    def _take_epoch(self, response: Any) -> None:
        self._requests.take_epoch(response.producer_id, response.producer_epoch)
        self._sequences.clear()

    async def _take_transaction(self) -> bool:
        """Write and commit or abort; return whether the next transaction may have the same epoch."""
        if self._is_drawn(BEGINS_ANEW_SHARE):
            await self._rest(LONGEST_ABSENCE_MS)
            return False
        self._transaction = transaction = self._history.begin(self._transactional_id, self._name)
        self._registered.clear()
        self._is_unsure = self._commits_twice = False
        try:
            await self._work(transaction)
            is_commit = not self._is_drawn(ABORTS_SHARE)
        except RefusedError:
            if transaction.outcome is not Outcome.OPEN:
                raise
            self._is_unsure, is_commit = True, False
            await self._rest(self._rest_ms)
        except _GivenUpError:
            is_commit = False
        return await self._repeat(partial(self._end, transaction, is_commit=is_commit))

    async def _work(self, transaction: Transaction) -> None:
        """Perhaps commit the group's next offset, and write to some partitions."""
        partitions = range(self._shared.schedule.partitions)
        count = self._chance.randint(1, MAX_WRITES)
        numbers = [self._chance.choice(partitions) for _ in range(count)]
        commits_offset = self._is_drawn(COMMITS_OFFSETS_SHARE)
        offset_of = self._chance.choice(partitions) if commits_offset else None
        await self._risk()
        if offset_of is not None:
            step = await self._work_on(partial(self._fetch_offset, offset_of))
            await self._add(self._group, self._requests.add_group(self._group))
            await self._work_on(partial(self._commit_offset, transaction, step))
        for number in numbers:
            values = self._plan_write(transaction)
            batch = self._batch(number, values)
            await self._add(number, self._requests.add_partition(number))
            await self._work_on(partial(self._write, transaction, number, values, batch))

    async def _work_on(self, step: Callable[[], Awaitable[T]]) -> T:
        return await self._repeat(step, self._risk)

    async def _risk(self) -> None:
        """Sometimes stall, die, or give up a transaction that may have failed."""
        while (chance := self._chance.random()) < DIES_SHARE + STALLS_SHARE:
            if chance < DIES_SHARE:
                self._die()
                self._rest_ms = LONGEST_ABSENCE_MS
                raise RefusedError
            await self._rest(LONGEST_ABSENCE_MS)
        if chance < DIES_SHARE + STALLS_SHARE + GIVES_UP_SHARE and self._is_unsure:
            raise _GivenUpError

    def _die(self) -> None:
        for broker_id in range(1, self._shared.schedule.brokers + 1):
            self._client.disconnect(broker_id)
        self._give_transaction_up()

    # -- writing --------------------------------------------------------------------------------------

    def _plan_write(self, transaction: Transaction) -> list[bytes]:
        """Return the values of the next batch."""
        first = sum(map(len, transaction.written.values()))
        count = self._chance.randint(1, 2)
        name = self._name.encode()
        values = [b"%s/%d/%d" % (name, transaction.number, first + each) for each in range(count)]
        for value in values:
            self._history.add_value(transaction, value)
        return values

    async def _add(self, what: int | str, request: Any) -> None:
        """Add a partition or group to the transaction at the coordinator, as needed before version 2."""
        if self._requests.version < 2 and what not in self._registered:
            await self._work_on(partial(self._add_once, what, request))

    async def _add_once(self, what: int | str, request: Any) -> None:
        with self._fenced_if_replaced("a new partition"):
            response = await self._ask_coordinator(self._transactional_id, request)
            self._check(self._requests.error_of_added(response), self._transactional_id)
        self._registered.add(what)

    async def _write(self, transaction: Transaction, number: int, values: list[bytes], batch: bytes) -> None:
        leader, epoch = self._leader(number)
        broker = self._shared.broker(leader)
        request = self._requests.produce(number, batch, self._chance.choice(TIMEOUTS_MS))
        try:
            with self._fenced_if_replaced("a write"):
                response = await self._ask(leader, request, 90, self.parked_ms)
                answer = response.responses[0].partition_responses[0]
                self._check(answer.error_code)
        except StepError:
            self._leaders.pop(number, None)
            raise
        first = Acknowledged(number, answer.base_offset, values[0], ACKS_ALL, epoch)
        self._shared.add_acknowledged(first, values, leader, broker)
        transaction.written[number] += values
        self._sequences[number] = self._sequences.get(number, 0) + len(values)

    # -- offsets --------------------------------------------------------------------------------------

    async def _fetch_offset(self, number: int) -> OffsetStep:
        """Return the step that the transaction makes in the offset of its group.

        A group member would learn from its generation that a coordinator was deposed; this producer has none, so
        responses of such a coordinator do not count.
        """
        request = offset_fetch_request(self._group, (TOPIC, number), require_stable=True)
        response, counts = await self._ask_newest(self._group, request)
        (group,) = response.groups
        self._check(group.error_code or group.topics[0].partitions[0].error_code, self._group)
        if not counts:
            self._forget(self._group)
            raise AgainError
        offset = max(group.topics[0].partitions[0].committed_offset, 0)
        if not self._is_replaced:
            self._history.check_offset(self._transactional_id, number, offset)
        return OffsetStep(number, offset, offset + self._chance.randint(1, 9))

    async def _commit_offset(self, transaction: Transaction, step: OffsetStep) -> None:
        request = self._requests.commit_offset(self._group, step.partition, step.end)
        with self._fenced_if_replaced("an offset"):
            response = await self._ask_coordinator(self._group, request)
            self._check(response.topics[0].partitions[0].error_code, self._group)
        transaction.step = step

    # -- the end --------------------------------------------------------------------------------------

    def _give_transaction_up(self) -> None:
        """Set the outcome of the transaction of a producer that ends."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        if transaction.outcome is Outcome.ENDING and self._commits_twice:
            transaction.outcome = Outcome.IN_DOUBT
        else:
            transaction.outcome = Outcome.ABORTED

    async def _end(self, transaction: Transaction, *, is_commit: bool) -> bool:
        """Commit or abort; return whether the next transaction may have the same epoch."""
        if not is_commit and self._requests.version < 2 and not self._registered:
            # Nothing was added, so there is nothing to abort; the next epoch ends anything unknown.
            self._give_transaction_up()
            self._rest_ms = 30
            return False
        if is_commit:
            transaction.outcome = Outcome.ENDING
        with self._fenced_if_replaced("the end of its transaction"):
            response = await self._ask_to_end(is_commit)
            if response.error_code in RETRIABLE:
                self._commits_twice = True
            elif response.error_code and not is_commit:
                # Another producer has ended it.
                transaction.outcome = Outcome.ABORTED
            self._check(response.error_code, self._transactional_id)
        transaction.outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
        self._transaction = None
        if self._requests.version >= 2:
            self._take_epoch(response)
        return self._requests.version >= 2 or not self._is_unsure

    async def _ask_to_end(self, is_commit: bool) -> Any:
        """Return the response; now and then the producer disconnects before, and dies without a response."""
        key = self._transactional_id
        coordinator = await self._coordinator(key)
        hangs_up = self._is_drawn(HANGS_UP_SHARE)
        if hangs_up:
            self._shared.cluster.scheduler.call_later(self._chance.randint(0, 20), self._client.disconnect, coordinator)
        try:
            return await self._ask_coordinator(key, self._requests.end(is_commit=is_commit), 90)
        except AgainError:
            self._commits_twice = True
            if hangs_up:
                self._die()
                raise RefusedError from None
            raise
