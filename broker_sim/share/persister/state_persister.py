"""Calls on their way to the share coordinators; mirrors `DefaultStatePersister` and `PersisterStateManager`.

A call goes to the broker that leads the share partition's partition of `__share_group_state`. Calls of one
kind and one group for the same broker go together, in one request of the kind at a time; what becomes due
meanwhile goes with the next (`CallQueue`).

What becomes of a call:

A. answered, or refused for a reason that stays: done; one that names no share partition is not sent
B. there is no coordinator: looked for again, up to `MAX_ATTEMPTS` times
C. the coordinator loads, has moved or has no quorum, or does not know of the topic yet: sent again, to the
   coordinator of then, up to `MAX_ATTEMPTS` times
D. the connection is lost, or there is no answer in time: as C

Between two attempts the wait doubles, from two seconds on, a fifth more or less. Deliberate difference: a
broker looks a coordinator up in its own metadata; in Kafka it asks another broker where it does not find
it there.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.inter_broker import MAX_ATTEMPTS, InterBrokerQueue, backoff_ms
from broker_sim.share.persister.call_queue import Call, CallQueue, take_joined
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE, InitialState, NothingMore, ReaderEpoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.runtime.inter_broker import InterBrokerSender
    from broker_sim.share.share_state import ReadState, SharePartitionKey, StateOutcome, StateSummary, WrittenState
    from broker_sim.share.state_apis import StateApi

LARGE_WRITE: Final = 1_000
"""After a request with so many state batches the next one waits for the next turn of the loop."""

_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_NOT_FOUND: Final = "Error in find coordinator. Exhausted max retries to find coordinator without success."


class StatePersister:
    """The `Persister` of one broker. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        sender: InterBrokerSender[tuple[StateApi, Any], Any],
        partition_for: Callable[[str], int],
        create_state_topic: Callable[[], object],
    ) -> None:
        """`partition_for(coordinator_key)` is the partition of `__share_group_state` that the key is in.

        `create_state_topic()` asks the controller to make that topic.
        """
        self._broker = broker
        self._partition_for = partition_for
        self._create_state_topic = create_state_topic
        self._queue = InterBrokerQueue(
            sender, CallQueue, self._take_calls, broker.process.after_serving, before_sending=self._look_up_new
        )
        """Calls by the broker that they go to, and by their kind."""
        self._new: dict[tuple[StateApi, SharePartitionKey], deque[Call]] = {}
        """Those whose coordinator is still to be looked up."""

    # -- the calls: see `Persister` ---------------------------------------------------------------

    def initialize_state(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: Callable[[StateOutcome], object]
    ) -> None:
        """Begin the state in that epoch; -1 as the offset leaves it open."""
        self._enqueue(Call(INITIALIZE, key, InitialState(state_epoch, start_offset), on_done))

    def read_state(self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[ReadState], object]) -> None:
        """Read the whole state, as a leader of that epoch."""
        self._enqueue(Call(READ, key, ReaderEpoch(leader_epoch), on_done))

    def write_state(
        self, key: SharePartitionKey, state: WrittenState, on_done: Callable[[StateOutcome], object]
    ) -> None:
        """Write what has changed."""
        self._enqueue(Call(WRITE, key, state, on_done))

    def delete_state(self, key: SharePartitionKey, on_done: Callable[[StateOutcome], object]) -> None:
        """Delete all state of the share partition."""
        self._enqueue(Call(DELETE, key, NothingMore(), on_done))

    def read_summary(
        self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[StateSummary], object]
    ) -> None:
        """Read where the share partition stands."""
        self._enqueue(Call(SUMMARY, key, ReaderEpoch(leader_epoch), on_done))

    # -- what is to be sent -----------------------------------------------------------------------

    def _enqueue(self, call: Call) -> None:
        if not call.key.group_id or call.key.partition < 0:
            call.on_done(call.api.failed(ErrorCode.UNKNOWN_SERVER_ERROR, None))
            return
        self._new.setdefault((call.api, call.key), deque()).append(call)
        self._queue.send_soon()

    def _look_up_new(self) -> None:
        new, self._new = self._new, {}
        for calls in new.values():
            while calls:
                self._look_up(take_joined(calls))

    def _look_up(self, call: Call) -> None:
        """Queue the call for its coordinator, or look for that again later."""
        image = self._broker.image()
        if SHARE_GROUP_STATE_TOPIC in image.topics:
            number = self._partition_for(call.key.coordinator_key())
            state = image.partition(TopicPartition(SHARE_GROUP_STATE_TOPIC, number))
            leader = None if state is None else image.alive_broker(state.leader)
            if leader is not None:
                call.lookups = 0
                self._queue.waiting_for(leader.broker_id, call.api).add(call)
                return
        else:
            self._create_state_topic()
        call.lookups += 1
        if call.lookups >= MAX_ATTEMPTS:
            call.on_done(call.api.failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, _NOT_FOUND))
        else:
            self._try_later(call, call.lookups)

    def _try_later(self, call: Call, attempts: int) -> None:
        self._broker.call_later(backoff_ms(attempts, self._broker.random), self._enqueue, call)

    def _take_calls(self, waiting: CallQueue) -> tuple[tuple[StateApi, Any], Callable[[Any | None], object]]:
        """Take the calls of one group."""
        calls = waiting.take()
        first = next(iter(calls.values()))
        api, group_id = first.api, first.key.group_id
        request = api.request_of(group_id, [(key, call.asked) for key, call in calls.items()])
        return (api, request), partial(self._broker.process.actions.serve, self._take, api, group_id, calls)

    # -- what comes back --------------------------------------------------------------------------

    def _take(self, api: StateApi, group_id: str, calls: dict[SharePartitionKey, Call], response: Any | None) -> None:
        outcomes = {} if response is None else api.outcomes_of(group_id, response)
        for key, call in calls.items():
            outcome = outcomes.get(key)
            if outcome is None:
                lost = ErrorCode.UNKNOWN_SERVER_ERROR if outcomes else ErrorCode.NETWORK_EXCEPTION
                outcome = api.failed(lost, ERROR_TEXTS[lost])
            self._take_one(call, outcome)
        if not self._queue:
            return
        if sum(call.batch_count for call in calls.values()) < LARGE_WRITE:
            self._queue.send_soon()
        else:
            # Others come in between: the answer may have come at once.
            self._broker.call_later(0, self._queue.send_soon)

    def _take_one(self, call: Call, outcome: Any) -> None:
        error_code = outcome.error_code
        if not error_code:
            call.on_done(outcome)
            return
        reason = outcome.error_message or ERROR_TEXTS.get(error_code, "")
        if error_code in _RETRIABLE:
            call.attempts += 1
            if call.attempts < MAX_ATTEMPTS:
                self._try_later(call, call.attempts)
                return
            reason = f"Exhausted max retries to complete {call.api.verb} RPC without success."
        text = f"Error in {call.api.verb} RPC. {reason}"
        call.on_done(call.api.failed(error_code, text))
