"""A sink that writes the trace into a topic of the traced cluster, one record per line.

Kafka has no counterpart. The trace's thread builds the batches, and leaders append them as for a producer with
acks=1, so writing the trace parks no operation in a purgatory. Unless it exists already, the topic gets one partition
per broker with one replica each, so no follower fetches it. While all leaders are paused or dead, lines are queued;
beyond a limit the oldest are dropped.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker_sim.controller.requests import CreatableTopic
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes

BATCH_BYTES = 500_000
"""About half of the default of `max.message.bytes`."""
KEPT_BATCHES = 200
"""Maximum number of queued batches."""
CONFIGS = {"message.timestamp.type": "LogAppendTime"}

log = get_logger(__name__)


class TraceTopic:
    """A `TraceSink`; lines that are written before `open` are queued."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dropped_batches = 0
        self._nodes: Nodes | None = None
        self._batches: deque[bytes] = deque()
        self._turn = 0

    def open(self, nodes: Nodes) -> None:
        """Create the topic unless it exists, and start appending. Thread rule: the nodes' thread.

        Raises ApiError for an invalid name.
        """
        if self.name not in nodes.controller.image.topics:
            nodes.make_topics([CreatableTopic(self.name, len(nodes.nodes), 1, configs=CONFIGS)])
        self._nodes = nodes

    def write(self, lines: Sequence[str]) -> None:
        """Queue lines to be appended on the nodes' thread; returns at once."""
        for batch in _batches(lines):
            self._batches.append(batch)
        nodes = self._nodes
        if nodes is not None:
            nodes.scheduler.call_soon_threadsafe(self._append)

    def close(self) -> None:
        """Stop appending; called when the cluster is closed."""
        self._nodes = None

    def _append(self) -> None:
        while self._batches:
            batch = self._batches.popleft()
            if not self._append_one(batch):
                self._batches.appendleft(batch)
                break
        while len(self._batches) > KEPT_BATCHES:
            self._batches.popleft()
            self.dropped_batches += 1
            log.warning("trace_batch_dropped", topic=self.name, dropped=self.dropped_batches)

    def _append_one(self, batch: bytes) -> bool:
        leaders = self._running_leaders()
        if not leaders:
            return False
        self._turn += 1
        topic_partition, broker = leaders[self._turn % len(leaders)]
        error_code = broker.append_own(topic_partition, batch)
        if error_code is ErrorCode.MESSAGE_TOO_LARGE:
            log.warning("trace_batch_too_large", topic=self.name)
            return True
        return error_code is ErrorCode.NONE

    def _running_leaders(self) -> list[tuple[TopicPartition, Broker]]:
        nodes = self._nodes
        topic = None if nodes is None else nodes.controller.image.topics.get(self.name)
        if nodes is None or topic is None:
            return []
        return [
            (TopicPartition(self.name, number), nodes.brokers[state.leader])
            for number, state in enumerate(topic.partitions)
            if state.leader in nodes.brokers and nodes.node(state.leader).state is ProcessState.RUNNING
        ]


def _batches(lines: Sequence[str]) -> Iterator[bytes]:
    values: list[bytes] = []
    size_bytes = 0
    for line in lines:
        value = line.encode()
        if size_bytes + len(value) > BATCH_BYTES and values:
            yield build_batch(values)
            values, size_bytes = [], 0
        values.append(value)
        size_bytes += len(value)
    if values:
        yield build_batch(values)
