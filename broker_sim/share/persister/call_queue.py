"""Calls that wait for one share coordinator, and what of them goes in one request; mirrors `RPCBatchKey`'s maps.

Calls of one group go together, each group in its turn. Of one share partition there is one call in a request.
Writes of a share partition that wait together are one write, because a leader may have thousands of them: each lock
that ends writes by itself. Deliberate difference: in Kafka each goes by itself.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

from broker_sim.share.share_state import WrittenState

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.share.share_state import SharePartitionKey, StateBatch
    from broker_sim.share.state_apis import StateApi

MOST_BATCHES: Final = 5_000
"""A request that has so many state batches takes no more calls, and a write no more writes."""


class Call:
    """One call that is not done; mirrors `PersisterStateManagerHandler`."""

    __slots__ = ("api", "asked", "attempts", "key", "lookups", "on_done")

    def __init__(self, api: StateApi, key: SharePartitionKey, asked: Any, on_done: Callable[[Any], object]) -> None:
        self.api = api
        self.key = key
        self.asked = asked
        self.on_done = on_done
        self.attempts = 0
        """How often it was sent without success."""
        self.lookups = 0
        """How often there was no coordinator for it."""

    @property
    def batch_count(self) -> int:
        """How many state batches it has."""
        return len(self.asked.state_batches) if isinstance(self.asked, WrittenState) else 0


class CallQueue:
    """Calls of one kind for one broker. Thread rule: the broker's loop."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: OrderedDict[str, dict[SharePartitionKey, deque[Call]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, call: Call) -> None:
        """Let a call wait."""
        of_group = self._groups.setdefault(call.key.group_id, {})
        of_group.setdefault(call.key, deque()).append(call)

    def take(self) -> dict[SharePartitionKey, Call]:
        """Take the calls of the next request away: one for each share partition of one group."""
        group_id, waiting = self._groups.popitem(last=False)
        calls: dict[SharePartitionKey, Call] = {}
        count = 0
        for key in list(waiting):
            of_partition = waiting.pop(key)
            calls[key] = call = take_joined(of_partition)
            if of_partition:
                waiting[key] = of_partition
            count += call.batch_count
            if count >= MOST_BATCHES:
                break
        if waiting:
            self._groups[group_id] = waiting
        return calls


def take_joined(calls: deque[Call]) -> Call:
    """Take the first call away, with the writes behind it that can go with it."""
    first = calls.popleft()
    count = first.batch_count
    joined = [first]
    while calls and count < MOST_BATCHES and _can_join(first, calls[0]):
        joined.append(calls.popleft())
        count += joined[-1].batch_count
    if len(joined) == 1:
        return first
    batches: list[StateBatch] = []
    for call in joined:
        batches += call.asked.state_batches

    def done(outcome: Any) -> None:
        for call in joined:
            call.on_done(outcome)

    # The last one knows best where the share partition stands.
    asked = joined[-1].asked._replace(state_batches=tuple(batches))
    whole = Call(first.api, first.key, asked, done)
    whole.attempts = max(call.attempts for call in joined)
    return whole


def _can_join(first: Call, following: Call) -> bool:
    """Whether both are writes of the same leader in the same epoch of the state."""
    one, other = first.asked, following.asked
    return (
        isinstance(one, WrittenState)
        and isinstance(other, WrittenState)
        and one.state_epoch == other.state_epoch
        and one.leader_epoch == other.leader_epoch
    )
