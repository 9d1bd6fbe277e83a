"""The stage on which one scenario plays: a cluster's brokers by their parts, topics, clients, faults.

Whatever a scenario does to the cluster is undone when its stage is closed, and the next one starts
on a healthy cluster.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from broker_sim.errors import ErrorCode
from integration.clients import admin
from integration.clients.stopwatch import now_ms, pause_ms
from integration.clients.topics import Topic
from integration.clients.user_client import UserConsumer, UserProducer
from integration.stage.faults import Faults
from integration.stage.view import ClusterView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from broker_sim.protocol import messages
    from integration.stage.under_test import ClusterUnderTest

__all__ = ["Stage"]

SETTLE_MS = 900
"""A new partition joins a follower's fetches after the one that waits at the leader: 500 ms."""
NUDGE_AFTER_MS = 50
"""A broker's metadata names a partition a moment before its fetcher has it."""


class Stage(ClusterView, Faults):
    """One scenario's view of the cluster; a context manager. One thread plays."""

    def __init__(
        self, cluster: ClusterUnderTest, prefix: str, *, warm_topic: Topic | None = None
    ) -> None:
        """See a cluster; ``warm_topic``, of `warm_up`, makes topics usable sooner."""
        ClusterView.__init__(self, cluster)
        Faults.__init__(self)
        self._prefix = prefix
        self._warm_topic = warm_topic
        self._topics: list[Topic] = []

    @property
    def topics(self) -> tuple[Topic, ...]:
        """What was made and not deleted again."""
        return tuple(self._topics)

    # -- topics ---------------------------------------------------------------------------------

    def topic(
        self,
        replicas: Sequence[int] | None = None,
        *,
        partitions: int = 1,
        assignments: Sequence[Sequence[int]] | None = None,
        settled: bool = True,
        **configs: str,
    ) -> Topic:
        """Create a topic under a new name and return when all its brokers serve it.

        Every partition gets ``replicas`` (default: all brokers, led by the anchor) unless
        ``assignments`` says otherwise. In the names of ``configs`` an underscore stands for a dot.
        ``settled`` waits until the followers' fetches hold the partitions.
        """
        wanted = assignments or [replicas or self.brokers] * partitions
        name = f"{self._prefix}.{len(self._topics) + 1}"
        # Records are of a fixed past, so that they are the same in every run: they must not expire.
        named = {"retention.ms": "-1"}
        named |= {key.replace("_", "."): value for key, value in configs.items()}
        topic = admin.create_topic(self.ask(self.anchor), name, wanted, named)
        self._topics.append(topic)
        for broker in self.brokers:
            if self.can_answer(broker):
                self.until(partial(self.is_complete, topic, broker), f"{name} is served")
        if settled and any(len(assigned) > 1 for assigned in wanted):
            self.settle()
        return topic

    def warm_up(self) -> Topic:
        """Let every broker replicate from every other one, so that all fetchers run already.

        A fetcher that was just made may look for its first partition only after a second. Returns
        the topic by which that was done: one partition led by each broker.
        """
        turns = [self.brokers[turn:] + self.brokers[:turn] for turn in range(len(self.brokers))]
        topic = self.topic(assignments=turns, settled=False)
        self._nudge(topic)
        return topic

    def settle(self) -> None:
        """Wait until the followers' fetches hold partitions that have just come to them."""
        if self._warm_topic is None or not self.all_well:
            pause_ms(SETTLE_MS)
            return
        for _ in range(2):
            pause_ms(NUDGE_AFTER_MS)
            self._nudge(self._warm_topic)

    def _nudge(self, topic: Topic) -> None:
        """Replicate a record from every broker: all fetches that wait there are answered."""
        for partition, (leader, *_) in enumerate(topic.replicas):
            self.ask(leader).produce(topic, b"warm", partition=partition)

    def name(self, suffix: str) -> str:
        """Return a topic's name that no other scenario uses; nobody makes it here."""
        return f"{self._prefix}.{suffix}"

    def unknown_topic(self) -> Topic:
        """Return a topic that nobody has made."""
        return Topic(f"{self._prefix}.unknown", bytes(range(16)), (self.brokers,))

    def delete(self, topic: Topic) -> float:
        """Delete a topic; returns the moment of the answer (`now_ms`)."""
        admin.delete_topic(self.ask(self.anchor), topic)
        self._topics = [kept for kept in self._topics if kept != topic]
        return now_ms()

    def alter_topic(self, topic: Topic, **configs: str | None) -> None:
        """Change a topic's configurations; None is the default again."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        admin.alter_topic_configs(self.ask(self.anchor), topic, named)

    # -- clients --------------------------------------------------------------------------------

    def producer_id(self) -> int:
        """Return a new producer id; a broker that has just started may still be getting some."""
        answers: list[messages.InitProducerIdResponse] = []

        def given() -> bool:
            answers.append(self.ask(self.anchor).init_producer_id())
            return answers[-1].error_code == ErrorCode.NONE

        self.until(given, "a producer id is given")
        return answers[-1].producer_id

    def producer(self, **configs: str | int) -> UserProducer:
        """Return a producer of confluent-kafka; underscores in names stand for dots."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        return self._cleanup.enter_context(UserProducer(self.bootstrap_servers, named))

    def consumer(self, **configs: str | int) -> UserConsumer:
        """Return a consumer of confluent-kafka, as `producer`."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        return self._cleanup.enter_context(UserConsumer(self.bootstrap_servers, named))

    def on_close(self, undo: Callable[[], object]) -> None:
        """Call ``undo`` when the scenario is over, however it ends."""
        self._cleanup.callback(undo)

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Undo all faults and return when the cluster is healthy.

        The topics stay: deleting one lets the followers' fetchers back off for a while, which
        the next scenario would see.
        """
        try:
            self.undo_faults()
            if self.was_hurt:
                for broker in self.brokers:
                    self.until_serving(broker)
                for topic in self._topics:
                    self.until_replicated(topic)
        finally:
            self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
