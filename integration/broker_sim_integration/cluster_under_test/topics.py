"""The topics of one scenario: created with names of its own, and ready before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients import admin
from broker_sim_integration.clients.stopwatch import Moment, now_ms, pause_ms
from broker_sim_integration.clients.topics import Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim_integration.cluster_under_test.brokers import Brokers
    from broker_sim_integration.cluster_under_test.clients import Clients
    from broker_sim_integration.cluster_under_test.faults import Faults
    from broker_sim_integration.cluster_under_test.wait_until import WaitUntil

SETTLE_MS = 900
"""Wait in ms until followers fetch a new partition: the fetch already parked at the leader ends after 500 ms."""
NUDGE_AFTER_MS = 50
"""Wait in ms after a broker's metadata shows a partition, until its fetcher has the partition, too."""


class Topics:
    """Creates, changes and deletes topics, on connections that scenarios do not time."""

    def __init__(
        self,
        prefix: str,
        warm_topic: Topic | None,
        *,
        brokers: Brokers,
        clients: Clients,
        faults: Faults,
        wait_until: WaitUntil,
    ) -> None:
        """Topic names begin with `prefix`; `warm_topic` is the result of `warm_up`."""
        self._prefix = prefix
        self._warm_topic = warm_topic
        self._brokers = brokers
        self._clients = clients
        self._faults = faults
        self._wait_until = wait_until
        self._created: list[Topic] = []

    @property
    def created(self) -> tuple[Topic, ...]:
        """The topics that were created and not deleted again."""
        return tuple(self._created)

    def create(
        self,
        replicas: Sequence[int] | None = None,
        *,
        partitions: int = 1,
        assignments: Sequence[Sequence[int]] | None = None,
        settled: bool = True,
        **configs: str,
    ) -> Topic:
        """Create a topic with a new name; returns when all its brokers serve it.

        Each partition gets `replicas` (default: all brokers, led by the first one) unless `assignments` is
        given. In the names of `configs` an underscore stands for a dot. With `settled` it also waits until
        the followers' fetches include the partitions.
        """
        wanted = assignments or [replicas or tuple(self._brokers)] * partitions
        name = f"{self._prefix}.{len(self._created) + 1}"
        # Records have old timestamps, the same in each run: they must not expire.
        named = {"retention.ms": "-1"}
        named |= {key.replace("_", "."): value for key, value in configs.items()}
        topic = admin.create_topic(self._clients.ask(self._brokers.first), name, wanted, named)
        self._created.append(topic)
        for broker in self._brokers:
            if self._faults.can_answer(broker):
                self._wait_until.served(topic, broker)
        if settled and any(len(assigned) > 1 for assigned in wanted):
            self.settle()
        return topic

    def warm_up(self) -> Topic:
        """Make each broker replicate from each other one, so that all fetchers are running; return the topic used.

        A new fetcher may look for its first partition only after a second. The topic has one partition led by
        each broker.
        """
        first, second, third = self._brokers
        turns = [(first, second, third), (second, third, first), (third, first, second)]
        topic = self.create(assignments=turns, settled=False)
        self._nudge(topic)
        return topic

    def settle(self) -> None:
        """Wait until the followers' fetches include partitions that have just been assigned."""
        if self._warm_topic is None or not self._faults.none_now:
            pause_ms(SETTLE_MS)
            return
        for _ in range(2):
            pause_ms(NUDGE_AFTER_MS)
            self._nudge(self._warm_topic)

    def _nudge(self, topic: Topic) -> None:
        """Replicate a record from each broker, which completes all fetches parked there."""
        for partition, (leader, *_) in enumerate(topic.replicas):
            self._clients.ask(leader).produce(topic, b"warm", partition=partition)

    def name(self, suffix: str) -> str:
        """Return a topic name that no other scenario uses; no topic is created."""
        return f"{self._prefix}.{suffix}"

    def unknown(self) -> Topic:
        """Return a topic that does not exist."""
        return Topic(f"{self._prefix}.unknown", bytes(range(16)), (tuple(self._brokers),))

    def delete(self, topic: Topic) -> Moment:
        """Delete a topic; return the time of the response."""
        began_ms = now_ms()
        admin.delete_topic(self._clients.ask(self._brokers.first), topic)
        self._created = [kept for kept in self._created if kept != topic]
        return Moment(now_ms(), began_ms=began_ms)

    def alter(self, topic: Topic, **configs: str | None) -> None:
        """Change configurations of a topic; None resets to the default."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        admin.alter_topic_configs(self._clients.ask(self._brokers.first), topic, named)
