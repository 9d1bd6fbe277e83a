"""What one sees of a cluster: its brokers by their parts, metadata, and waiting for what is to come.

Brokers have parts instead of numbers: ``anchor`` is where the active controller lives (if it lives
with a broker at all) and is never hurt; ``second`` and ``third`` may be.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.errors import ErrorCode
from integration.clients import admin
from integration.clients.broker_client import LATEST, BrokerClient
from integration.clients.stopwatch import now_ms, pause_ms
from integration.observations import UNTIMED, Observation
from integration.stage.normalise import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from integration.clients.raw_client import Reply
    from integration.clients.topics import PartitionDescription, Topic
    from integration.observations import Timing
    from integration.stage.under_test import ClusterUnderTest

__all__ = ["ClusterView", "StageError"]

READY_TIMEOUT_MS = 60_000
POLL_MS = 20
LEADER_HEARS_MS = 150


class StageError(RuntimeError):
    """The cluster did not come into the state that a scenario needs."""


class ClusterView:
    """A running cluster of three brokers, asked on connections that scenarios do not measure."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        self._cleanup = ExitStack()
        self._admin: dict[int, BrokerClient] = {}
        brokers = sorted(cluster.addresses)
        host = cluster.controller_host()
        self.anchor = brokers[0] if host is None else host
        self.second, self.third = (broker for broker in brokers if broker != self.anchor)

    @property
    def brokers(self) -> tuple[int, int, int]:
        """The three brokers, the anchor first."""
        return self.anchor, self.second, self.third

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses for a client."""
        return self._cluster.bootstrap_servers

    def address(self, broker: int) -> tuple[str, int]:
        """Return host and port of a broker."""
        return self._cluster.addresses[broker]

    def part(self, broker: int) -> str:
        """Return which part a broker plays: equal on both sides, as its number need not be."""
        parts = {self.anchor: "anchor", self.second: "second", self.third: "third", -1: "none"}
        return parts.get(broker, "unknown")

    def parts(self, brokers: Sequence[int] | frozenset[int]) -> list[str]:
        """Return the parts of several brokers, sorted."""
        return sorted(self.part(broker) for broker in brokers)

    def whole(
        self,
        step: str,
        reply: Reply[Any],
        timing: Timing = UNTIMED,
        *,
        unordered: Collection[str] = (),
    ) -> Observation:
        """Observe a whole response, all of it compared but for what may differ by nature.

        ``unordered`` names lists in it that Kafka makes from hash maps.
        """
        return Observation(
            step,
            elapsed_ms=reply.elapsed_ms,
            timing=timing,
            fields=normalised(reply.message, self.part, unordered),
        )

    # -- clients --------------------------------------------------------------------------------

    def connect(self, broker: int) -> BrokerClient:
        """Open a new connection to a broker; it is closed with the stage."""
        return self._cleanup.enter_context(BrokerClient(*self.address(broker)))

    def ask(self, broker: int) -> BrokerClient:
        """Return the connection for preparations, which scenarios do not measure."""
        client = self._admin.get(broker)
        if client is None or client.ended.is_set():
            client = self._admin[broker] = self.connect(broker)
        return client

    # -- metadata -------------------------------------------------------------------------------

    def describe_all(
        self, topic: Topic, *, via: int | None = None
    ) -> dict[int, PartitionDescription]:
        """Return what a broker's metadata says of all partitions."""
        return admin.describe_partitions(self.ask(via or self.anchor), topic.name)

    def describe(
        self, topic: Topic, *, partition: int = 0, via: int | None = None
    ) -> PartitionDescription:
        """Return what a broker's metadata says of one partition; the anchor's unless said."""
        return self.describe_all(topic, via=via)[partition]

    # -- waiting --------------------------------------------------------------------------------

    def until_isr(self, topic: Topic, *members: int, via: int | None = None) -> float:
        """Wait until the ISR is exactly ``members``; returns the moment (`now_ms`).

        A little longer than that: the metadata may know it before the leader acts by it.
        """
        changed_ms = self.until(
            lambda: self.describe(topic, via=via).isr == frozenset(members),
            f"the ISR of {topic.name} is {self.parts(members)}",
        )
        pause_ms(LEADER_HEARS_MS)
        return changed_ms

    def until_leader(self, topic: Topic, leader: int, *, via: int | None = None) -> float:
        """Wait until metadata names ``leader`` and it serves; returns the first moment (`now_ms`).

        A broker is named before it has begun to lead. -1 waits until there is no leader.
        """
        named_ms = self.until(
            lambda: self.describe(topic, via=via).leader == leader,
            f"{self.part(leader)} leads {topic.name}",
        )
        if leader >= 0:
            self.until(
                partial(self._serves, topic, leader), f"{self.part(leader)} serves {topic.name}"
            )
        return named_ms

    def _serves(self, topic: Topic, leader: int) -> bool:
        try:
            reply = self.ask(leader).list_offset(topic)
        except OSError:
            return False  # it has just been started
        return reply.message.topics[0].partitions[0].error_code == ErrorCode.NONE

    def until_visible(self, topic: Topic, high_watermark: int, partition: int = 0) -> float:
        """Wait until the leader's high watermark is at least that; returns the moment."""
        leader = self.describe(topic, partition=partition).leader

        def visible() -> bool:
            reply = self.ask(leader).list_offset(topic, LATEST, partition=partition)
            return reply.message.topics[0].partitions[0].offset >= high_watermark

        return self.until(visible, f"{high_watermark} records of {topic.name} are visible")

    def until_appended(self, topic: Topic, log_end_offset: int) -> None:
        """Wait until the anchor, which has to be the leader, has appended so many records.

        A fetch beyond the log end is refused, one at the log end is not.
        """

        def appended() -> bool:
            reply = self.ask(self.anchor).fetch(topic, log_end_offset, max_wait_ms=0)
            return reply.message.responses[0].partitions[0].error_code == ErrorCode.NONE

        self.until(appended, f"{log_end_offset} records of {topic.name} are appended")

    def until_brokers(self, *brokers: int) -> float:
        """Wait until the anchor lists exactly these brokers; returns the moment (`now_ms`)."""
        return self.until(
            lambda: set(admin.brokers_of(self.ask(self.anchor))) == set(brokers),
            f"the brokers are {self.parts(brokers)}",
        )

    def until_serving(self, broker: int) -> float:
        """Wait until a broker that was started again lists all brokers; returns the moment."""
        return self.until(
            partial(self._lists_all, broker), f"{self.part(broker)} lists all brokers"
        )

    def until_known(self, name: str, partitions: int | None = None) -> None:
        """Wait until every broker knows a topic of that name, with so many partitions if given."""
        for broker in self.brokers:
            self.until(partial(self._knows, broker, name, partitions), f"{name} is known")

    def until_unknown(self, name: str) -> None:
        """Wait until no broker knows a topic of that name."""
        for broker in self.brokers:
            self.until(partial(self._knows, broker, name, 0), f"{name} is gone")

    def _knows(self, broker: int, name: str, partitions: int | None) -> bool:
        found = len(admin.describe_partitions(self.ask(broker), name))
        return found > 0 if partitions is None else found == partitions

    def wait(self, duration_ms: float) -> None:
        """Let time pass between two steps."""
        pause_ms(duration_ms)

    def until(
        self, condition: Callable[[], object], what: str, timeout_ms: float = READY_TIMEOUT_MS
    ) -> float:
        """Ask ``condition`` again and again; returns the moment at which it held."""
        deadline_ms = now_ms() + timeout_ms
        while not condition():
            if now_ms() > deadline_ms:
                raise StageError(f"{what}: still not so after {timeout_ms / 1000:g} s")
            pause_ms(POLL_MS)
        return now_ms()

    def is_complete(self, topic: Topic, via: int) -> bool:
        """Tell whether a broker knows all of a topic, and leads what it has to lead of it."""
        found = self.describe_all(topic, via=via)
        return len(found) == len(topic.replicas) and all(
            found[index].leader == brokers[0]
            and found[index].isr == frozenset(brokers)
            and (brokers[0] != via or self._leads(via, topic, index))
            for index, brokers in enumerate(topic.replicas)
        )

    def _leads(self, broker: int, topic: Topic, partition: int) -> bool:
        """Tell whether a broker acts as the leader: its metadata says so a moment earlier."""
        reply = self.ask(broker).list_offset(topic, LATEST, partition=partition)
        return reply.message.topics[0].partitions[0].error_code == ErrorCode.NONE

    def until_replicated(self, topic: Topic) -> float:
        """Wait until all replicas of all partitions are in sync; returns the moment."""
        return self.until(partial(self._isr_is_full, topic), f"{topic.name} is replicated")

    def _lists_all(self, broker: int) -> bool:
        try:
            with BrokerClient(*self.address(broker)) as client:
                return set(admin.brokers_of(client)) == set(self.brokers)
        except OSError:
            return False

    def _isr_is_full(self, topic: Topic) -> bool:
        found = self.describe_all(topic)
        return all(partition.isr == frozenset(partition.replicas) for partition in found.values())
