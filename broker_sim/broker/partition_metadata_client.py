"""Requests latest offsets from the leaders of partitions, for a group coordinator.

Mirrors `NetworkPartitionMetadataClient`. Partitions of one leader are sent together, one request at a time; later
requests wait. After a lost connection or a timeout a request is retried, up to `MAX_ATTEMPTS` times, with
exponential backoff.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.group.other_brokers import LatestOffset
from broker_sim.protocol.special_values import NO_OFFSET
from broker_sim.runtime.combined_calls import call_all
from broker_sim.runtime.inter_broker import MAX_ATTEMPTS, InterBrokerQueue, backoff_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.runtime.inter_broker import InterBrokerSender

    Sender = InterBrokerSender[Sequence[TopicPartition], Sequence[LatestOffset]]


@dataclass(slots=True)
class _Pending:
    """A request to one leader, for the offsets of partitions that it leads."""

    leader: int
    keys: list[TopicPartition]
    on_answer: Callable[[Sequence[LatestOffset]], object]
    attempts: int = 0


class PartitionMetadataClient:
    """The `ListLatestOffsets` of the groups. Thread rule: the broker's loop."""

    def __init__(self, broker: BrokerContext, sender: Sender) -> None:
        self._broker = broker
        self._queue = InterBrokerQueue(sender, deque[_Pending], self._take_first, broker.process.after_serving)

    def __call__(
        self, keys: Iterable[TopicPartition], on_result: Callable[[Mapping[TopicPartition, LatestOffset]], object]
    ) -> None:
        """Request the offsets from the leaders; a partition without a leader has the error LEADER_NOT_AVAILABLE."""
        image = self._broker.image()
        offsets_of: dict[TopicPartition, LatestOffset] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in dict.fromkeys(keys):
            state = image.partition(key)
            leader = None if state is None else image.alive_broker(state.leader)
            if leader is None:
                offsets_of[key] = LatestOffset(NO_OFFSET, ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                by_leader.setdefault(leader.broker_id, []).append(key)

        def request_offsets(leader: int, on_answer: Callable[[Sequence[LatestOffset]], object]) -> None:
            self._enqueue(_Pending(leader, by_leader[leader], on_answer))

        def take(answers: Mapping[int, Sequence[LatestOffset]]) -> None:
            for leader, offsets in answers.items():
                offsets_of.update(zip(by_leader[leader], offsets, strict=True))
            on_result(offsets_of)

        call_all(by_leader, request_offsets, take)

    def _enqueue(self, pending: _Pending) -> None:
        self._queue.waiting_for(pending.leader).append(pending)
        self._queue.send(pending.leader)

    def _take_first(
        self, waiting: deque[_Pending]
    ) -> tuple[Sequence[TopicPartition], Callable[[Sequence[LatestOffset] | None], object]]:
        pending = waiting.popleft()
        return pending.keys, partial(self._broker.process.actions.serve, self._take_answer, pending)

    def _take_answer(self, pending: _Pending, offsets: Sequence[LatestOffset] | None) -> None:
        if offsets is not None:
            pending.on_answer(offsets)
        elif pending.attempts < MAX_ATTEMPTS:
            pending.attempts += 1
            self._broker.call_later(backoff_ms(pending.attempts, self._broker.random), self._enqueue, pending)
        else:
            failed = LatestOffset(NO_OFFSET, ErrorCode.NETWORK_EXCEPTION)
            pending.on_answer([failed] * len(pending.keys))
        self._queue.send(pending.leader)
