"""Faults of a cluster, in real and in virtual time, independent of its clients.

A method begins a fault at once and returns the function that ends it; methods that only move something return no
function. Several faults may affect the same broker or link, and each ends on its own: a broker starts when the last
fault that holds it down ends. ApiError or WrongStateError is raised if the state of the cluster does not allow the
fault, for example pausing a dead broker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker_sim.chaos.faults.action import FOLLOWER, GROUPS, LEADER, THIRD, TRANSACTIONS
from broker_sim.cluster.status.coordinator_status import groups_status
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.errors import ClusterTimeoutError, WrongStateError
from broker_sim.handlers.faults import Fault
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault
from broker_sim.runtime.process import ProcessState
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.runtime.process import Process
    from broker_sim.runtime.scheduler import Scheduler

    Undo = Callable[[], object]

HALT_MS = 100
"""Delay before a broker with a full disk halts."""
HITS = 3
"""Maximum number of requests that a fault on requests hits."""
RUNS_MS: Final = 50
"""Time in ms that a broker with a slow disk runs between two waits."""
ROLES: Final = (LEADER, FOLLOWER, THIRD, GROUPS, TRANSACTIONS)
COORDINATED: Final = {
    GROUPS: TopicPartition(GROUP_METADATA_TOPIC, 0),
    TRANSACTIONS: TopicPartition(TRANSACTION_STATE_TOPIC, 0),
}
"""The partitions whose leaders are the coordinators; under chaos each coordinator topic has one partition."""
_PLACES: Final = {FOLLOWER: 0, THIRD: 1}


def _nothing(_broker_id: int) -> None:
    """Do nothing."""


class ClusterFaults:
    """The faults of one cluster. Thread rule: the cluster's event loop."""

    def __init__(
        self,
        kafka: AsyncCluster,
        network: ClientNetwork,
        *,
        on_stopped: Callable[[int], object] = _nothing,
        on_start: Callable[[int], object] = _nothing,
        on_started: Callable[[int], object] = _nothing,
    ) -> None:
        """`on_stopped(broker_id)` is called after a shutdown, `on_start` before and `on_started` after a start."""
        self.shutting_down = 0
        """Number of brokers that are shutting down; a shutdown waits while the controller is cut off."""
        self.starting = 0
        """Number of broker starts under way."""
        self.combined = CombinedFaults(kafka.nodes, network)
        self.nodes = kafka.nodes
        self._kafka = kafka
        self._network = network
        self._on_stopped = on_stopped
        self._on_start = on_start
        self._on_started = on_started
        self._holding_down: Counter[int] = Counter()
        """Number of faults that hold each broker down."""

    @property
    def traffic(self) -> int:
        """Number of messages so far between clients and brokers."""
        return self._network.traffic

    # -- processes --------------------------------------------------------------------------------

    def pause(self, broker_id: int) -> Undo:
        """Pause a broker."""
        self.nodes.pause(broker_id)
        process = self.nodes.node(broker_id).process
        assert process is not None
        return process.resume

    def kill(self, broker_id: int) -> Undo:
        """Kill a broker; the end restarts it."""
        self._kafka.kill(broker_id)
        return self._hold_down(broker_id)

    def lose_power(self, *broker_ids: int) -> Undo:
        """Cut the power of brokers at once; the end restarts them.

        Raises WrongStateError without simulated disks.
        """
        if not isinstance(self._kafka, SimulatedCluster):
            raise WrongStateError("there are no simulated disks")
        self._kafka.lose_power(*broker_ids)
        return self._hold_down(*broker_ids)

    def stop(self, broker_id: int) -> Undo:
        """Shut a broker down in a controlled way; the end restarts it."""
        node = self.nodes.running(broker_id)
        if node.on_stopped is not None:
            raise WrongStateError(f"broker {broker_id} is shutting down already")
        stopping = self._spawn(self._stop_if_running(broker_id))
        self.shutting_down += 1
        stopping.add_done_callback(lambda _: self._stopped(broker_id))
        start = self._hold_down(broker_id)

        def start_when_stopped() -> None:
            # The shutdown waits while the controller is cut off.
            if stopping.done():
                start()
            else:
                stopping.add_done_callback(lambda _: start())

        return start_when_stopped

    async def _stop_if_running(self, broker_id: int) -> None:
        # Checked again: another action at the same moment may have come first.
        with suppress(WrongStateError):
            await self._kafka.stop(broker_id)

    def _stopped(self, broker_id: int) -> None:
        self.shutting_down -= 1
        self._on_stopped(broker_id)

    def roll(self, broker_id: int | None) -> asyncio.Task[None]:
        """Restart one broker, or all one by one, each when the previous one is back in every ISR."""
        broker_ids = list(self.nodes.nodes) if broker_id is None else [broker_id]
        for each in broker_ids:
            if self.nodes.running(each).on_stopped is not None:
                raise WrongStateError(f"broker {each} is shutting down")
        self.starting += 1
        return self._spawn(self._roll(broker_ids))

    async def _roll(self, broker_ids: list[int]) -> None:
        try:
            for broker_id in broker_ids:
                # Other faults may have stopped it meanwhile, or keep other brokers from coming back.
                with suppress(WrongStateError, ClusterTimeoutError):
                    await self._kafka.stop(broker_id)
                    if not self._holding_down[broker_id]:
                        await self._start(broker_id, wait=True)
                    await self._kafka.wait_until_in_sync()
        finally:
            self.starting -= 1

    def _hold_down(self, *broker_ids: int) -> Undo:
        """Keep brokers down; return a function that starts those that no other fault keeps down."""
        self._holding_down.update(broker_ids)

        def start() -> None:
            self._holding_down.subtract(broker_ids)
            self.starting += 1
            self._spawn(self._start_all(broker_ids))

        return start

    async def _start_all(self, broker_ids: tuple[int, ...]) -> None:
        try:
            for broker_id in broker_ids:
                # Checked only now: several actions on the broker may end at the same moment.
                is_dead = self.nodes.node(broker_id).state is ProcessState.DEAD
                if is_dead and not self._holding_down[broker_id]:
                    await self._start(broker_id, wait=False)
        finally:
            self.starting -= 1

    async def _start(self, broker_id: int, *, wait: bool) -> None:
        self._on_start(broker_id)
        await self._kafka.start(broker_id, wait=wait)
        self._on_started(broker_id)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(coroutine)

    def slow_disk(self, broker_id: int, stall_ms: str) -> Undo:
        """Make a broker wait for its disk repeatedly, `stall_ms` each time, with short pauses."""
        process = self.nodes.running(broker_id).process
        assert process is not None
        return _stalls(process, self.nodes.scheduler, int(stall_ms))

    def full_disk(self, broker_id: int) -> Undo:
        """Refuse producers' records on a broker, then halt it, as when no log directory is left, until the end."""
        self.nodes.running(broker_id)
        refused = self._inject(Fault(api="Produce", broker=broker_id, error="KAFKA_STORAGE_ERROR"))
        halt = self.nodes.scheduler.call_later(HALT_MS, self._kill_if_alive, broker_id)
        start = self._hold_down(broker_id)

        def make_room() -> None:
            halt.cancel()
            refused()
            start()

        return make_room

    def _kill_if_alive(self, broker_id: int) -> None:
        if self.nodes.node(broker_id).state is not ProcessState.DEAD:
            self._kafka.kill(broker_id)

    def shift_clock(self, broker_id: int, shift_ms: int | str) -> Undo:
        """Shift the wall clock of a broker's machine."""
        clock = self.nodes.node(broker_id).clock
        clock.shift(int(shift_ms))
        return lambda: clock.shift(-int(shift_ms))

    # -- links and clients' connections -------------------------------------------------------------

    def isolate(self, broker_id: int) -> Undo:
        """Cut a broker off from the other brokers and the controller."""
        return self._fault_all_links(broker_id, LinkFault(drop=True))

    def lag(self, broker_id: int, delay_ms: str) -> Undo:
        """Delay messages between a broker and the other nodes."""
        return self._fault_all_links(broker_id, LinkFault(delay_ms=int(delay_ms)))

    def cut_link(self, source: int, target: int) -> Undo:
        """Drop messages from one node to another."""
        return self._fault_link(source, target, LinkFault(drop=True))

    def slow_link(self, source: int, target: int, delay_ms: str) -> Undo:
        """Delay messages from one node to another."""
        return self._fault_link(source, target, LinkFault(delay_ms=int(delay_ms)))

    def _fault_link(self, source: int, target: int, fault: LinkFault) -> Undo:
        if source == target:
            raise WrongStateError("a node has no link to itself")
        return self.combined.fault_links([(source, target)], fault)

    def _fault_all_links(self, broker_id: int, fault: LinkFault) -> Undo:
        links = self.combined.links_of(self.nodes.node(broker_id).broker_id)
        return self.combined.fault_links(links, fault)

    def deaf(self, broker_id: int) -> Undo:
        """Block messages from clients to a broker."""
        return self.combined.cut_clients((ANY, self.address(broker_id)))

    def mute(self, broker_id: int) -> Undo:
        """Block messages from a broker to clients."""
        return self.combined.cut_clients((self.address(broker_id), ANY))

    def unreachable(self, broker_id: int) -> Undo:
        """Block all messages between a broker and its clients."""
        address = self.address(broker_id)
        return self.combined.cut_clients((ANY, address), (address, ANY))

    def address(self, broker_id: int) -> str:
        """Return the broker's `host:port` on the clients' network."""
        host, port = self._kafka.address(broker_id)
        return f"{host}:{port}"

    # -- leaders ----------------------------------------------------------------------------------

    def transfer(self, broker_id: int, number: str) -> bool:
        """Make a broker lead a partition of clients' topics, which are numbered in the order of their names.

        Returns whether another broker led it before.
        """
        topics = self.nodes.controller.image.topics
        partitions = [
            (name, partition)
            for name in clients_topics(self.nodes)
            for partition in range(len(topics[name].partitions))
        ]
        topic, partition = partitions[int(number) % len(partitions)]
        return self._lead(topic, partition, broker_id)

    def _lead(self, topic: str, partition: int, broker_id: int) -> bool:
        """Make a broker lead a partition; return whether another broker led it before."""
        state = self.nodes.controller.image.partition(TopicPartition(topic, partition))
        self.nodes.transfer_leadership(topic, partition, broker_id)
        return state is not None and state.leader != broker_id

    def move_groups(self, broker_id: int) -> bool:
        """Make a broker coordinate the groups; return whether another broker did before."""
        return self._move(GROUP_METADATA_TOPIC, broker_id)

    def move_transactions(self, broker_id: int) -> bool:
        """Make a broker coordinate the transactions; return whether another broker did before."""
        return self._move(TRANSACTION_STATE_TOPIC, broker_id)

    def _move(self, topic: str, broker_id: int) -> bool:
        state = self.nodes.controller.image.topics.get(topic)
        if state is None:
            raise WrongStateError("no client has used a coordinator yet")
        return sum(self._lead(topic, partition, broker_id) for partition in range(len(state.partitions))) > 0

    def rebalance(self, _broker_id: int | None, number: str) -> None:
        """Remove a member (by number, in order of arrival) from each group; it joins again when it learns of that."""
        removed = 0
        for group in groups_status(self.nodes):
            process = self.nodes.node(group.coordinator).process
            if group.members and process is not None and process.runs:
                member = group.members[int(number) % len(group.members)]
                broker = self.nodes.brokers[group.coordinator]
                process.deliver(broker.remove_member, group.id, member.id)
                removed += 1
        if not removed:
            raise WrongStateError("no group has members")

    # -- requests ---------------------------------------------------------------------------------

    def error(self, broker_id: int | None, value: str) -> Undo:
        """Answer some requests of an API with an error."""
        return self._inject(request_fault("error", broker_id, value))

    def lose(self, broker_id: int | None, value: str) -> Undo:
        """Handle some requests of an API, but lose their responses."""
        return self._inject(request_fault("lose", broker_id, value))

    def delay(self, broker_id: int | None, value: str) -> Undo:
        """Answer some requests of an API late."""
        return self._inject(request_fault("delay", broker_id, value))

    def hold(self, broker_id: int | None, value: str) -> Undo:
        """Hold some requests of an API before a broker handles them."""
        return self._inject(request_fault("hold", broker_id, value))

    def damage(self, broker_id: int | None, value: str) -> Undo:
        """Damage the records of some fetch responses."""
        return self._inject(request_fault("damage", broker_id, value))

    def _inject(self, fault: Fault) -> Undo:
        """Inject a fault; the function that ends it returns whether it has hit a request."""
        injected = self._kafka.inject(fault)

        def remove() -> bool:
            injected.remove()
            return injected.hits > 0

        return remove


def _stalls(process: Process, scheduler: Scheduler, stall_ms: int) -> Callable[[], object]:
    """Repeatedly block a process for `stall_ms` and let it run for a moment; return the function that ends this."""
    is_over = False

    def block() -> None:
        if not is_over and process.state is not ProcessState.DEAD:
            process.block()
            scheduler.call_later(stall_ms, unblock)

    def unblock() -> None:
        if not is_over and process.state is not ProcessState.DEAD:
            process.unblock()
            scheduler.call_later(RUNS_MS, block)

    def end() -> None:
        nonlocal is_over
        is_over = True
        if process.state is not ProcessState.DEAD:
            process.unblock()

    block()
    return end


# -- links and connections ------------------------------------------------------------------------------


class ClientNetwork(Protocol):
    """The network between clients and brokers. An end is `ANY`, a host, or `host:port` of a broker."""

    @property
    def traffic(self) -> int:
        """Number of messages so far."""

    def has_stopped(self, source: str, target: str) -> bool:
        """Whether the present cut from one to the other has stopped a message."""

    def cut(self, source: str, target: str) -> None:
        """Hold all bytes from one to the other, as TCP does."""

    def mend(self, source: str, target: str) -> None:
        """Undo `cut`."""


class CombinedFaults:
    """The combined effect of all faults in force on the links and client connections of one cluster."""

    def __init__(self, nodes: Nodes, network: ClientNetwork) -> None:
        self._nodes = nodes
        self._network = network
        self._link_faults: dict[tuple[int, ...], list[LinkFault]] = {}
        self._cuts: Counter[tuple[str, str]] = Counter()

    def links_of(self, broker_id: int) -> list[tuple[int, ...]]:
        """Return the links between a broker and all other nodes, in both directions."""
        others = [each for each in (CONTROLLER_ID, *self._nodes.nodes) if each != broker_id]
        return [link for each in others for link in ((broker_id, each), (each, broker_id))]

    def fault_links(self, links: Sequence[tuple[int, ...]], fault: LinkFault) -> Callable[[], object]:
        """Add a fault to each link; return the function that removes it."""
        for link in links:
            self._link_faults.setdefault(link, []).append(fault)
            self._set_link(link)

        def undo() -> None:
            for link in links:
                self._link_faults[link].remove(fault)
                self._set_link(link)

        return undo

    def _set_link(self, link: tuple[int, ...]) -> None:
        faults = self._link_faults[link]
        drop = any(fault.drop for fault in faults)
        delay_ms = max((fault.delay_ms for fault in faults), default=0)
        source, target = link
        self._nodes.links.set_fault(source, target, LinkFault(drop, delay_ms))

    def cut_clients(self, *ways: tuple[str, str]) -> Callable[[], bool]:
        """Cut the network from one end to another, for each of these directions.

        Returns the function that mends it and returns whether the cuts have stopped a message.
        """
        for way in ways:
            self._network.cut(*way)
            self._cuts[way] += 1

        def mend() -> bool:
            has_stopped = any(self._network.has_stopped(*way) for way in ways)
            for way in ways:
                self._cuts[way] -= 1
                if not self._cuts[way]:
                    self._network.mend(*way)
            return has_stopped

        return mend


# -- roles ------------------------------------------------------------------------------------------------


def clients_topics(nodes: Nodes) -> list[str]:
    """Return the topics that are not internal, sorted by name. Raises WrongStateError if there are none."""
    topics = sorted(name for name in nodes.controller.image.topics if not is_internal_topic(name))
    if not topics:
        raise WrongStateError("there is no topic yet")
    return topics


def who_is(nodes: Nodes, role: str) -> int:
    """Return the id of the broker with one of `ROLES`. Raises WrongStateError if there is none."""
    key = COORDINATED.get(role) or TopicPartition(clients_topics(nodes)[0], 0)
    state = nodes.controller.image.partition(key)
    if state is None or not state.has_leader:
        raise WrongStateError(f"{key} has no leader")
    place = _PLACES.get(role)
    if place is None:
        return state.leader
    others = [replica for replica in state.replicas if replica != state.leader]
    if place >= len(others):
        raise WrongStateError(f"{key} has no such replica")
    return others[place]


def request_fault(kind: str, broker_id: int | None, value: str) -> Fault:
    """Return the fault of an action on requests. Raises ValueError for an impossible value."""
    api, _, effect = value.partition("/")
    if kind == "delay" and not effect.isdecimal():
        raise ValueError("pass an API and milliseconds, such as value=Produce/400")
    fields: dict[str, dict[str, Any]] = {
        "error": {"api": api, "error": effect},
        "lose": {"api": api, "lose": "response"},
        "delay": {"api": api, "delay_ms": int(effect) if kind == "delay" else 0},
        "hold": {"api": api, "hold": True},
        "damage": {"api": "Fetch", "damage": value},
    }
    return Fault(broker=broker_id, count=HITS, **fields[kind])
