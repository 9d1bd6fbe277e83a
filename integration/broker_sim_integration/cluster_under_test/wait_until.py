"""Waiting for states of a cluster, seen on connections that scenarios do not time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim_integration.clients import admin
from broker_sim_integration.clients.broker_client import LATEST, BrokerClient
from broker_sim_integration.clients.stopwatch import pause_ms
from broker_sim_integration.cluster_under_test.polling import poll_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.clients.stopwatch import Moment
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.brokers import Brokers
    from broker_sim_integration.cluster_under_test.clients import Clients
    from broker_sim_integration.cluster_under_test.metadata import Metadata

LEADER_LEARNS_MS = 150


class WaitUntil:
    """One method per state; each returns the time (`now_ms`) at which the state was seen.

    Calling the object itself waits for any condition. Raise `NotReachedError` after a minute.
    """

    def __init__(self, brokers: Brokers, clients: Clients, metadata: Metadata) -> None:
        self._brokers = brokers
        self._clients = clients
        self._metadata = metadata

    def __call__(self, condition: Callable[[], object], what: str) -> Moment:
        """Wait until `condition` is true; `what` is its name in an error."""
        return poll_until(condition, what)

    def isr(self, topic: Topic, *members: int, via: int | None = None) -> Moment:
        """Wait until the ISR is exactly `members`.

        Returns a little later, because metadata may show it before the leader applies it.
        """
        changed_ms = poll_until(
            lambda: self._metadata.describe(topic, via=via).isr == frozenset(members),
            f"the ISR of {topic.name} is {self._brokers.roles(members)}",
        )
        pause_ms(LEADER_LEARNS_MS)
        return changed_ms

    def replicated(self, topic: Topic) -> Moment:
        """Wait until all replicas of all partitions are in sync."""

        def isr_is_full() -> bool:
            found = self._metadata.describe_all(topic.name).values()
            return all(partition.isr == frozenset(partition.replicas) for partition in found)

        return poll_until(isr_is_full, f"{topic.name} is replicated")

    def leader(self, topic: Topic, leader: int, *, via: int | None = None) -> Moment:
        """Wait until metadata shows `leader` and it serves; return the time at which metadata first showed it.

        Metadata may show a leader before it has begun to lead. -1 waits until there is no leader.
        """
        role = self._brokers.role(leader)
        named_ms = poll_until(
            lambda: self._metadata.describe(topic, via=via).leader == leader, f"{role} leads {topic.name}"
        )
        if leader >= 0:
            poll_until(partial(self._leads, leader, topic), f"{role} serves {topic.name}")
        return named_ms

    def visible(self, topic: Topic, high_watermark: int, partition: int = 0) -> Moment:
        """Wait until the leader's high watermark is at least `high_watermark`."""
        leader = self._metadata.describe(topic, partition=partition).leader

        def visible() -> bool:
            reply = self._clients.ask(leader).list_offset(topic, LATEST, partition=partition)
            return reply.message.topics[0].partitions[0].offset >= high_watermark

        return poll_until(visible, f"{high_watermark} records of {topic.name} are visible")

    def appended(self, topic: Topic, log_end_offset: int) -> Moment:
        """Wait until the first broker, which must be the leader, has appended up to `log_end_offset`.

        A fetch beyond the log end gets an error, one at the log end does not.
        """

        def appended() -> bool:
            leader = self._clients.ask(self._brokers.first)
            reply = leader.fetch(topic, log_end_offset, max_wait_ms=0)
            return reply.message.responses[0].partitions[0].error_code == ErrorCode.NONE

        return poll_until(appended, f"{log_end_offset} records of {topic.name} are appended")

    def served(self, topic: Topic, broker: int) -> Moment:
        """Wait until a broker knows all of a topic, and leads its partitions there."""
        return poll_until(partial(self._serves, broker, topic), f"{topic.name} is served")

    def known(self, name: str, partitions: int | None = None) -> None:
        """Wait until every broker knows a topic with this name, and this number of partitions if given."""
        for broker in self._brokers:
            poll_until(partial(self._knows, broker, name, partitions), f"{name} is known")

    def unknown(self, name: str) -> None:
        """Wait until no broker knows a topic with this name."""
        for broker in self._brokers:
            poll_until(partial(self._knows, broker, name, 0), f"{name} is gone")

    def brokers(self, *brokers: int) -> Moment:
        """Wait until the first broker's metadata has exactly these brokers."""
        return poll_until(
            lambda: self._metadata.listed_brokers() == set(brokers), f"the brokers are {self._brokers.roles(brokers)}"
        )

    def serving(self, broker: int) -> Moment:
        """Wait until the metadata of a restarted broker has all brokers."""
        role = self._brokers.role(broker)
        return poll_until(partial(self._lists_all, broker), f"{role} lists all brokers")

    def _serves(self, broker: int, topic: Topic) -> bool:
        found = self._metadata.describe_all(topic.name, via=broker)
        return len(found) == len(topic.replicas) and all(
            found[index].leader == replicas[0]
            and found[index].isr == frozenset(replicas)
            and (replicas[0] != broker or self._leads(broker, topic, index))
            for index, replicas in enumerate(topic.replicas)
        )

    def _leads(self, broker: int, topic: Topic, partition: int = 0) -> bool:
        """Whether a broker acts as the leader, which may be later than its metadata shows it."""
        try:
            reply = self._clients.ask(broker).list_offset(topic, LATEST, partition=partition)
        except OSError:
            return False  # the broker has just been started
        return reply.message.topics[0].partitions[0].error_code == ErrorCode.NONE

    def _knows(self, broker: int, name: str, partitions: int | None) -> bool:
        found = len(self._metadata.describe_all(name, via=broker))
        return found > 0 if partitions is None else found == partitions

    def _lists_all(self, broker: int) -> bool:
        try:
            with BrokerClient(*self._brokers.address(broker)) as client:
                return set(admin.brokers_of(client)) == set(self._brokers)
        except OSError:
            return False
