"""A play's own lookups: leaders, coordinators, and whether the cluster has settled."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim_integration.cluster_under_test.faults import UNDONE_BY
from broker_sim_integration.fuzz.connection import AsyncConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from collections.abc import Sequence as Several

    from broker_sim.protocol.message import Message
    from broker_sim_integration.fuzz.references import References
    from broker_sim_integration.fuzz.sequence import TopicPlan
    from broker_sim_integration.fuzz.side import FuzzedSide

ANSWER_S: Final = 10.0
SETTLED_S: Final = 40.0
POLL_S: Final = 0.02
APPLIED_S: Final = 0.04
"""Time for a broker to apply a change that no request shows."""
LATEST: Final = -1
NOT_YET: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
DEAD: Final = "Dead"
"""The state of a group that a broker does not know."""
SESSION_MS: Final = 6_000
STABLE_S: Final = 0.3
MOVED_S: Final = 4.0
REPLICATED_S: Final = 1.0
MOVES: Final = ("AlterPartitionReassignmentsRequest", "ElectLeadersRequest")
"""Requests after which followers fetch from other leaders."""
SERVED: Final = (ErrorCode.NONE, ErrorCode.OFFSET_NOT_AVAILABLE)
"""Errors of a serving leader; a new one without enough in-sync replicas has no offset available."""
WAITS_FOR: Final = {"CreateTopicsRequest": "all_know", "DeleteTopicsRequest": "_none_knows"}


class PlayError(RuntimeError):
    """A cluster did not get ready for a play, or did not settle during it."""


class Lookup:
    """Sends lookups to the brokers of one side, for one play."""

    def __init__(self, side: FuzzedSide) -> None:
        self._side = side
        self._connections: dict[int, AsyncConnection] = {}
        self._coordinators: dict[str, int] = {}
        self._down: dict[int, str] = {}
        self._topics: list[str] = []
        self._replicated: set[str] = set()
        self._founded = 0

    async def warm_up(self) -> None:
        """Wait until every broker has producer ids and the coordinators' topics exist."""
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)

        async def has_ids() -> bool:
            ranges = [await self.ask(broker, request, 4) for broker in self._side.brokers]
            return not any(one.error_code for one in ranges)

        await self.until(has_ids, "producer ids are given")
        for name in ("group", "txn"):
            await self._coordinator(name)

    async def prepare(self, plans: Several[TopicPlan], references: References) -> None:
        """Create the topics of a sequence; returns when their leaders serve them."""
        request = messages.CreateTopicsRequest
        wanted = [
            request.CreatableTopic(
                references.name(plan.name),
                -1,
                -1,
                [
                    request.CreatableReplicaAssignment(index, self._replicas(plan, index))
                    for index in range(plan.partitions)
                ],
                [request.CreatableTopicConfig(*config) for config in plan.configs.items()],
            )
            for plan in plans
        ]
        if not wanted:
            return
        answer = await self.ask(self._side.brokers.first, request(wanted, 15_000), 7)
        for topic in answer.topics:
            if topic.error_code:
                raise PlayError(f"{topic.name}: {topic.error_message}")
        references.learn("", answer)
        self._topics = [topic.name for topic in wanted]
        self._replicated = {references.name(plan.name) for plan in plans if len(plan.replicas) > 1}
        await self.until(self._topics_are_served, "the topics are served")

    def _replicas(self, plan: TopicPlan, partition: int) -> list[int]:
        roles = plan.replicas or ("first",)
        turned = [roles[(index + partition) % len(roles)] for index in range(len(roles))]
        return [self._side.broker(role) for role in turned]

    async def broker(self, at: str) -> int:
        """Return the broker of a request: its `at`, with all references replaced."""
        match at.split():
            case ["leader", topic, partition]:
                return await self._leader(topic, int(partition))
            case ["coordinator", name]:
                return await self._coordinator(name)
            case ["other", name]:
                coordinator = await self._coordinator(name)
                return next(one for one in self._side.brokers if one != coordinator)
        return self._side.broker(at)

    async def _leader(self, topic: str, partition: int) -> int:
        state = (await self.partitions(self._any_alive(), topic)).get(partition)
        leader = -1 if state is None else state[0]
        return self._side.brokers.first if leader < 0 else leader

    async def _coordinator(self, name: str) -> int:
        if name not in self._coordinators:
            is_transaction = name.rpartition(".")[2].startswith("txn")
            request = messages.FindCoordinatorRequest(key_type=int(is_transaction), coordinator_keys=[name])

            async def found() -> bool:
                answer = await self.ask(self._any_alive(), request, 4)
                (one,) = answer.coordinators
                if one.error_code == ErrorCode.NONE and await self._coordinates(one.node_id, name):
                    self._coordinators[name] = one.node_id
                return name in self._coordinators

            await self.until(found, f"{name} has a coordinator")
        return self._coordinators[name]

    async def _coordinates(self, broker: int, name: str) -> bool:
        """Whether a broker serves as coordinator: it is advertised before it has loaded its partition."""
        if name.rpartition(".")[2].startswith("txn"):
            transactions = messages.DescribeTransactionsRequest([name])
            (state,) = (await self.ask(broker, transactions, 0)).transaction_states
            return state.error_code not in NOT_YET
        (group,) = (await self.ask(broker, messages.DescribeGroupsRequest([name]), 5)).groups
        return group.error_code not in NOT_YET

    async def settle_topics(self, request: Any, answer: Any) -> None:
        """Wait until all brokers know the changes made by a request."""
        name = type(request).__name__
        entries = getattr(answer, "topics", ()) or getattr(answer, "responses", ())
        if name not in WAITS_FOR or getattr(request, "validate_only", False):
            entries = ()
        for topic in [one.name for one in entries if not one.error_code]:
            arrived = partial(getattr(self, WAITS_FOR[name]), topic)
            await self.until(arrived, f"all brokers know of {name} for {topic}")
        if name in MOVES:
            with suppress(PlayError):  # changes that need a dead broker remain pending
                await self.until(self._is_stable, "the partitions settle", MOVED_S)
        await asyncio.sleep(APPLIED_S)

    async def settle_transaction(self, transactional_id: str) -> None:
        """Wait until the markers of an ending transaction are written."""
        if not transactional_id:
            return
        request = messages.DescribeTransactionsRequest([transactional_id])

        async def ended() -> bool:
            coordinator = await self._coordinator(transactional_id)
            (state,) = (await self.ask(coordinator, request, 0)).transaction_states
            return not str(state.transaction_state).startswith("Prepare")

        await self.until(ended, f"{transactional_id} has ended")

    async def settle_produced(self, leader: int, answer: Any) -> None:
        """Wait until the followers have the records that a leader has appended, or cannot get them.

        Whether they have them at the client's next fetch is random: followers in a fresh JVM take milliseconds.
        """
        for topic in answer.responses:
            for part in topic.partition_responses:
                if topic.name in self._replicated and not part.error_code:
                    replicated = partial(self._is_above, leader, topic.name, part.index, part.base_offset)
                    with suppress(PlayError):  # fewer in-sync replicas than min.insync.replicas
                        await self.until(replicated, "the records are replicated", REPLICATED_S)

    async def settle_groups(self, broker: int, prefix: str) -> None:
        """Wait until a coordinator shows a group that is created now, and hence all earlier changes.

        Groups are described and listed in their replicated state, and a first JoinGroup is answered before its record
        is replicated. An empty OffsetCommit creates a group that is shown when something else is written. The group's
        name does not start with `prefix`, to distinguish it from those of the play.
        """
        self._founded += 1
        group = f"settle{self._founded}.{prefix}"
        join = messages.JoinGroupRequest(
            group,
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[messages.JoinGroupRequest.JoinGroupRequestProtocol("range", b"")],
        )
        if (await self.ask(broker, join, 4)).error_code != ErrorCode.MEMBER_ID_REQUIRED:
            return  # no coordinator

        async def is_shown() -> bool:
            answer = await self.ask(broker, messages.DescribeGroupsRequest([group]), 5)
            return bool(answer.groups[0].group_state != DEAD)

        await self.until(is_shown, "the groups can be seen")

    async def hear(self, broker: int, group: str) -> None:
        """Wait until a broker has responded to a request about a group, without a time limit."""
        with suppress(OSError, TimeoutError):
            await self.ask(broker, messages.DescribeGroupsRequest([group]), 5)

    async def settle_after(self, verb: str, broker: int) -> None:
        """Wait until the remaining brokers agree on the live brokers and the topics."""
        if verb in UNDONE_BY:
            self._down[broker] = verb
        else:
            self._down.pop(broker, None)
        self._coordinators.clear()
        connection = self._connections.pop(broker, None)
        if connection is not None:
            await connection.close()
        await self.until(self._live_are_listed, f"the brokers agree after {verb}")
        await self.until(self._is_stable, f"the partitions settle after {verb}")

    async def close(self, references: References | None = None) -> None:
        """End remaining faults, delete the topics on a cluster that is not ours, and disconnect."""
        for broker, verb in list(self._down.items()):
            await self._side.verb(UNDONE_BY[verb], broker)
            await self.settle_after(UNDONE_BY[verb], broker)
        if not self._side.is_ours and references is not None and references.topic_ids:
            request = messages.DeleteTopicsRequest
            topics = [request.DeleteTopicState(name) for name in references.topic_ids]
            await self.ask(self._side.brokers.first, request(topics, timeout_ms=15_000), 6)
        for connection in self._connections.values():
            await connection.close()

    # -- questions ----------------------------------------------------------------------------------

    def _alive(self) -> list[int]:
        return [broker for broker in self._side.brokers if broker not in self._down]

    def _any_alive(self) -> int:
        return self._alive()[0]

    async def partitions(self, broker: int, topic: str) -> dict[int, tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
        """Return leader, epoch, replicas and ISR of the partitions known to a broker."""
        request = messages.MetadataRequest
        wanted = [request.MetadataRequestTopic(name=topic)]
        answer = await self.ask(broker, request(wanted, allow_auto_topic_creation=False), 12)
        return {
            one.partition_index: (
                one.leader_id,
                one.leader_epoch,
                tuple(one.replica_nodes),
                tuple(sorted(one.isr_nodes)),
            )
            for one in answer.topics[0].partitions
        }

    async def all_know(self, topic: str) -> bool:
        """Whether all brokers know a topic, and its leaders serve it."""
        views = [await self.partitions(broker, topic) for broker in self._alive()]
        return (
            all(views)
            and all(leader >= 0 for one in views for leader, _, _, _ in one.values())
            and await self._leaders_serve(topic, views[0])
        )

    async def _none_knows(self, topic: str) -> bool:
        return not any([await self.partitions(broker, topic) for broker in self._alive()])

    async def _topics_are_served(self) -> bool:
        return all([await self.all_know(topic) for topic in self._topics])

    async def _leaders_serve(self, topic: str, partitions: dict[int, Any]) -> bool:
        for index, (leader, *_) in partitions.items():
            if leader not in self._alive():
                continue
            if (await self._latest(leader, topic, index)).error_code not in SERVED:
                return False
        return True

    async def _is_above(self, leader: int, topic: str, index: int, offset: int) -> bool:
        """Whether the high watermark is above an offset, or the leader no longer serves it."""
        latest = await self._latest(leader, topic, index)
        return bool(latest.error_code) or latest.offset > offset

    async def _latest(self, leader: int, topic: str, index: int) -> Any:
        request = messages.ListOffsetsRequest
        partition = request.ListOffsetsPartition(index, -1, LATEST)
        query = request(-1, 0, [request.ListOffsetsTopic(topic, [partition])])
        return (await self.ask(leader, query, 7)).topics[0].partitions[0]

    async def _live_are_listed(self) -> bool:
        alive = set(self._alive())
        for broker in alive:
            answer = await self.ask(broker, messages.MetadataRequest([]), 12)
            if {one.node_id for one in answer.brokers} != alive:
                return False
        return True

    async def _is_stable(self) -> bool:
        """Whether all brokers agree on the topics, now and a moment later, and all live replicas are in sync."""
        before = await self._view()
        if before is None:
            return False
        await asyncio.sleep(STABLE_S)
        return await self._view() == before

    async def _view(self) -> dict[str, Any] | None:
        alive = set(self._alive())
        first: dict[str, Any] | None = None
        for broker in sorted(alive):
            view = {topic: await self.partitions(broker, topic) for topic in self._topics}
            if first is None:
                first = view
            elif view != first:
                return None
        for topic, partitions in (first or {}).items():
            for leader, _, replicas, isr in partitions.values():
                if leader >= 0 and set(isr) != alive.intersection(replicas):
                    return None
            if not await self._leaders_serve(topic, partitions):
                return None
        return first

    async def until(self, condition: Callable[[], Awaitable[bool]], what: str, limit_s: float = SETTLED_S) -> None:
        """Wait until the condition is true. Raises PlayError if that takes too long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while True:
            try:
                if await condition():
                    return
            except (OSError, TimeoutError):
                pass  # a starting broker
            if loop.time() > deadline:
                raise PlayError(f"{self._side.name}: not within {limit_s:g} s: {what}")
            await asyncio.sleep(POLL_S)

    async def ask(self, broker: int, message: Message, version: int) -> Any:
        """Return a broker's response. Raises OSError and TimeoutError."""
        connection = self._connections.get(broker)
        if connection is None or connection.ended:
            connection = await AsyncConnection.open(*self._side.brokers.address(broker))
            self._connections[broker] = connection
        async with asyncio.timeout(ANSWER_S):
            answer = await connection.send(message, version)
        if answer is None:
            raise ConnectionError(f"broker {broker} closed the connection")
        return answer
