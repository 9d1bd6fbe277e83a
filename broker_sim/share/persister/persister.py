"""Calls to the share coordinators of the cluster; mirrors `DefaultStatePersister` and `PersisterStateManager`.

`group.share.persister.class.name` may select `NoOpStatePersister` instead, which stores nothing.

Each call is for one share partition, and is sent to the leader of its partition of `__share_group_state`. Calls of one
kind and group for the same broker share a request, with one request of each kind in flight; calls that arrive meanwhile
go into the next one (`CallQueue`).

Outcomes of a call:

A. Success, or an error that is not retriable: done. A call without a group or with a negative
   partition is not sent.
B. No coordinator: the lookup is repeated, up to `MAX_ATTEMPTS` times.
C. The coordinator is loading, has moved or has no quorum, or does not know the topic yet: the call is resent, to the
   coordinator at that time, up to `MAX_ATTEMPTS` times.
D. Disconnected or timed out: as C.

The backoff between attempts starts at two seconds and doubles, with a jitter of 20 percent. The caller gets the last
error.

Deliberate differences: a broker looks up coordinators in its own metadata only; in Kafka it then asks another broker.
Kafka's calls have a list of share partitions and one future for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.inter_broker import MAX_ATTEMPTS, InterBrokerQueue, backoff_ms
from broker_sim.share.share_state import WrittenState
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE, InitialState, NoArguments, ReaderEpoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.runtime.inter_broker import InterBrokerSender
    from broker_sim.share.share_state import ReadState, SharePartitionKey, StateBatch, StateOutcome, StateSummary
    from broker_sim.share.state_apis import StateApi

MAX_BATCHES: Final = 5_000
"""Number of state batches above which no more calls are added to a request, or writes joined."""
LARGE_WRITE: Final = 1_000
"""Number of state batches in a request after which the next request waits for the next loop iteration."""

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


class Call:
    """A pending call; mirrors `PersisterStateManagerHandler`."""

    __slots__ = ("api", "arguments", "attempts", "key", "lookups", "on_done")

    def __init__(self, api: StateApi, key: SharePartitionKey, arguments: Any, on_done: Callable[[Any], object]) -> None:
        self.api = api
        self.key = key
        self.arguments = arguments
        self.on_done = on_done
        self.attempts = 0
        """Number of failed requests."""
        self.lookups = 0
        """Number of consecutive lookups without a coordinator."""

    @property
    def batch_count(self) -> int:
        """Number of state batches in the call."""
        return len(self.arguments.state_batches) if isinstance(self.arguments, WrittenState) else 0


class CallQueue:
    """Calls of one kind for one broker; mirrors the maps of `RPCBatchKey`. Thread rule: the broker's loop.

    Groups take turns; a request has the calls of one group, one per share partition. Waiting writes of one share
    partition are joined into one, because a leader may have thousands of them: each lock timeout is a write.
    Deliberate difference: Kafka does not join writes.
    """

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: OrderedDict[str, dict[SharePartitionKey, deque[Call]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, call: Call) -> None:
        """Add a call behind earlier ones of the same share partition."""
        group_calls = self._groups.setdefault(call.key.group_id, {})
        group_calls.setdefault(call.key, deque()).append(call)

    def take(self) -> dict[SharePartitionKey, Call]:
        """Remove and return the calls of the next request: one per share partition of one group."""
        group_id, waiting = self._groups.popitem(last=False)
        calls: dict[SharePartitionKey, Call] = {}
        count = 0
        for key in list(waiting):
            partition_calls = waiting.pop(key)
            calls[key] = call = take_joined(partition_calls)
            if partition_calls:
                waiting[key] = partition_calls
            count += call.batch_count
            if count >= MAX_BATCHES:
                break
        if waiting:
            self._groups[group_id] = waiting
        return calls


def take_joined(calls: deque[Call]) -> Call:
    """Remove and return the first call, joined with the following writes if possible."""
    first = calls.popleft()
    count = first.batch_count
    joined_calls = [first]
    while calls and count < MAX_BATCHES and _can_join(first, calls[0]):
        joined_calls.append(calls.popleft())
        count += joined_calls[-1].batch_count
    if len(joined_calls) == 1:
        return first
    batches: list[StateBatch] = []
    for call in joined_calls:
        batches += call.arguments.state_batches

    def done(outcome: Any) -> None:
        for call in joined_calls:
            call.on_done(outcome)

    # The last write has the latest start offset and count.
    arguments = joined_calls[-1].arguments._replace(state_batches=tuple(batches))
    joined_call = Call(first.api, first.key, arguments, done)
    joined_call.attempts = max(call.attempts for call in joined_calls)
    return joined_call


def _can_join(first: Call, following: Call) -> bool:
    """Whether both are writes with the same leader epoch and state epoch."""
    write, next_write = first.arguments, following.arguments
    return (
        isinstance(write, WrittenState)
        and isinstance(next_write, WrittenState)
        and write.state_epoch == next_write.state_epoch
        and write.leader_epoch == next_write.leader_epoch
    )


class Persister(ABC):
    """Reads and writes the state of share partitions for one broker. Thread rule: the broker's loop.

    Each callback is called once, possibly before the method returns.
    """

    def initialize_state(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: Callable[[StateOutcome], object]
    ) -> None:
        """Initialize the state in that epoch (InitializeShareGroupState); a start offset of -1 leaves it unset."""
        self.enqueue(Call(INITIALIZE, key, InitialState(state_epoch, start_offset), on_done))

    def read_state(self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[ReadState], object]) -> None:
        """Read the complete state, as leader in that epoch (ReadShareGroupState)."""
        self.enqueue(Call(READ, key, ReaderEpoch(leader_epoch), on_done))

    def write_state(
        self, key: SharePartitionKey, state: WrittenState, on_done: Callable[[StateOutcome], object]
    ) -> None:
        """Write changes of the state (WriteShareGroupState)."""
        self.enqueue(Call(WRITE, key, state, on_done))

    def delete_state(self, key: SharePartitionKey, on_done: Callable[[StateOutcome], object]) -> None:
        """Delete the state of the share partition (DeleteShareGroupState)."""
        self.enqueue(Call(DELETE, key, NoArguments(), on_done))

    def read_summary(
        self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[StateSummary], object]
    ) -> None:
        """Read offsets and counts of the share partition (ReadShareGroupStateSummary)."""
        self.enqueue(Call(SUMMARY, key, ReaderEpoch(leader_epoch), on_done))

    @abstractmethod
    def enqueue(self, call: Call) -> None:
        """Process the call, and call its `on_done` with the outcome."""


class NoOpStatePersister(Persister):
    """Stores nothing: each call succeeds at once, and reads return the default state."""

    def enqueue(self, call: Call) -> None:
        """Complete the call with the default outcome."""
        call.on_done(call.api.outcome())


class DefaultStatePersister(Persister):
    """Sends the calls to the share coordinators."""

    def __init__(
        self,
        broker: BrokerContext,
        sender: InterBrokerSender[tuple[StateApi, Any], Any],
        partition_for: Callable[[str], int],
        create_state_topic: Callable[[], object],
    ) -> None:
        """`partition_for(coordinator_key)` returns the key's partition of `__share_group_state`.

        `create_state_topic()` asks the controller to create that topic.
        """
        self._broker = broker
        self._partition_for = partition_for
        self._create_state_topic = create_state_topic
        self._queue = InterBrokerQueue(
            sender, CallQueue, self._next_request, broker.process.after_serving, before_sending=self._look_up_new
        )
        """Calls by broker and kind."""
        self._new: dict[tuple[StateApi, SharePartitionKey], deque[Call]] = {}
        """Calls whose coordinator is not yet looked up."""

    # -- requests ---------------------------------------------------------------------------------

    def enqueue(self, call: Call) -> None:
        """Send the call to its coordinator, which is looked up after the current handler has returned."""
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
        """Queue the call for its coordinator, or repeat the lookup later."""
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
        self._broker.call_later(backoff_ms(attempts, self._broker.random), self.enqueue, call)

    def _next_request(self, waiting: CallQueue) -> tuple[tuple[StateApi, Any], Callable[[Any | None], object]]:
        """Return the next request, with the calls of one group, and the callback for its response."""
        calls = waiting.take()
        first = next(iter(calls.values()))
        api, group_id = first.api, first.key.group_id
        request = api.request_of(group_id, [(key, call.arguments) for key, call in calls.items()])
        return (api, request), partial(self._broker.process.actions.serve, self._handle_response, api, group_id, calls)

    # -- answers ----------------------------------------------------------------------------------

    def _handle_response(
        self, api: StateApi, group_id: str, calls: dict[SharePartitionKey, Call], response: Any | None
    ) -> None:
        outcomes = {} if response is None else api.outcomes_of(group_id, response)
        for key, call in calls.items():
            outcome = outcomes.get(key)
            if outcome is None:
                error_code = ErrorCode.UNKNOWN_SERVER_ERROR if outcomes else ErrorCode.NETWORK_EXCEPTION
                outcome = api.failed(error_code, ERROR_TEXTS[error_code])
            self._handle_outcome(call, outcome)
        if not self._queue:
            return
        if sum(call.batch_count for call in calls.values()) < LARGE_WRITE:
            self._queue.send_soon()
        else:
            # Let other requests run first: responses may arrive synchronously.
            self._broker.call_later(0, self._queue.send_soon)

    def _handle_outcome(self, call: Call, outcome: Any) -> None:
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
