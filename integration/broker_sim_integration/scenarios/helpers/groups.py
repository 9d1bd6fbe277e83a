"""A group of a scenario: its name, its members, and observations in which ids are replaced by names."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker_sim.errors import ErrorCode
from broker_sim.protocol.message import Struct
from broker_sim_integration.clients.admin import elect_leader
from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.group_members import ClassicMember, ConsumerMember
from broker_sim_integration.clients.groups import describe_groups, find_coordinators
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import Observation, at_once
from broker_sim_integration.scenarios.helpers.normalise import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Timing

OFFSETS_TOPIC: Final = "__consumer_offsets"
NAMES_ASKED: Final = 20
"""Number of group names in one FindCoordinator request; each broker coordinates about a third of them."""
NOT_READY: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
UNORDERED: Final = ("groups", "members", "partitions", "topic_partitions", "topics")
RANDOM_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|^[A-Za-z0-9_-]{22}$")
ADDRESS: Final = re.compile(r"^/[0-9.]+$")

_Struct = TypeVar("_Struct", bound=Struct)


class GroupUnderTest:
    """One group and its members, which connect to its coordinator.

    Observations call the members `member 1`, `member 2` and so on, in the order of their creation; a member
    that got a second id is `member 1, id 2`.
    """

    def __init__(self, cluster: ClusterUnderTest, name: str, coordinator: int) -> None:
        self.name = name
        self.coordinator = coordinator
        self.tool = cluster.connect(coordinator)
        """A connection for requests that do not come from a member."""
        self._cluster = cluster
        self._members: list[ClassicMember | ConsumerMember] = []
        self._names: dict[str, str] = {name: "the group"}

    def member(self, text: bytes = b"", **options: Any) -> ClassicMember:
        """Return a new member with the classic protocol that has not joined yet.

        Its only assignor is `range` with `text` as user data, unless `options` say otherwise.
        """
        options.setdefault("protocols", {"range": subscription(["any"], user_data=text)})
        client = self._cluster.connect(self.coordinator)
        member = ClassicMember(client, self.name, **options)
        self._members.append(member)
        return member

    def consumer(self, member_id: str, **options: Any) -> ConsumerMember:
        """Return a new member with the consumer protocol (KIP-848) that has not joined yet.

        Its member id is derived from `member_id`, or left empty if that is empty.
        """
        member_id = member_id and f"id-of-{member_id}"
        client = self._cluster.connect(self.coordinator)
        member = ConsumerMember(client, self.name, member_id, **options)
        self._members.append(member)
        return member

    def with_id(self, **options: Any) -> ClassicMember:
        """Return a new member with the classic protocol that has got its member id.

        A static member is returned without an id, because it needs none to join.
        """
        member = self.member(**options)
        if member.instance_id is not None:
            return member
        reply = member.join()
        assert reply.message.error_code == ErrorCode.MEMBER_ID_REQUIRED, reply.message
        return member

    def state(self) -> str:
        """Return the group's state in DescribeGroups."""
        return describe_groups(self.tool, self.name).message.groups[0].group_state

    def wait_for_state(self, *states: str) -> None:
        """Wait until DescribeGroups returns one of these states."""
        self._cluster.wait_until(lambda: self.state() in states, f"{self.name} is {states}")

    def parked_join(self, member: ClassicMember) -> Pending[messages.JoinGroupResponse]:
        """Send a member's join; return it as soon as the group prepares a rebalance."""
        pending = member.start_join()
        self.wait_for_state("PreparingRebalance")
        return pending

    def seen(self, step: str, reply: Reply[Any], timing: Timing | None = None, *, attempt: int = 1) -> Observation:
        """Observe every field of a response with names instead of ids; due at once unless `timing` says otherwise."""
        self._learn()
        message = self._renamed(reply.message)
        error_code = getattr(message, "error_code", None)
        return Observation(
            step,
            error_code=error_code,
            elapsed_ms=reply.elapsed_ms,
            answered_ms=reply.answered_ms,
            timing=timing or at_once(),
            attempt=attempt,
            fields=normalised(message, self._cluster.brokers.role, UNORDERED),
        )

    def named(self, text: str) -> str:
        """Return the text with names instead of the ids of this group and its members."""
        self._learn()
        return self._named(text)

    def _named(self, text: str) -> str:
        for known, name in self._names.items():
            text = text.replace(known, name)
        return named(text)

    def _learn(self) -> None:
        for number, member in enumerate(self._members, 1):
            if member.member_id and member.member_id not in self._names:
                name = f"member {number}"
                ids = sum(known.split(",")[0] == name for known in self._names.values())
                self._names[member.member_id] = f"{name}, id {ids + 1}" if ids else name

    def _renamed(self, struct: _Struct) -> _Struct:
        """Return a copy with names instead of ids."""
        renamed = copy(struct)
        for field in struct.__slots__:
            setattr(renamed, field, self._value(field, getattr(struct, field)))
        return renamed

    def _value(self, field: str, value: Any) -> Any:
        match value:
            case str() if field == "client_host":
                return ADDRESS.sub("/address", value)
            case str():
                return self._named(value)
            case Struct():
                return self._renamed(value)
            case list():
                return [self._value(field, item) for item in value]
            case _:
                return value


def named(text: str) -> str:
    """Return the text with `<random>` instead of the random parts of ids."""
    return RANDOM_ID.sub("<random>", text)


def groups_on(cluster: ClusterUnderTest, broker: int, count: int) -> list[GroupUnderTest]:
    """Return `count` new groups whose coordinator is this broker and ready.

    The first FindCoordinator request creates the offsets topic.
    """
    client = cluster.clients.ask(broker)
    _wait_for_coordinators(cluster, client)
    found: list[GroupUnderTest] = []
    tried = 0
    while len(found) < count:
        names = [cluster.topics.name(f"group.{tried + index}") for index in range(NAMES_ASKED)]
        answers = find_coordinators(client, *names).message.coordinators
        ours = [answer.key for answer in answers if answer.node_id == broker]
        if not ours:
            _elect_preferred_leaders(cluster)
        tried += NAMES_ASKED if ours else 0
        found += [GroupUnderTest(cluster, name, broker) for name in ours[: count - len(found)]]
    for group in found:
        _wait_until_served(cluster, group)
    return found


def ready_group(cluster: ClusterUnderTest, broker: int | None = None) -> GroupUnderTest:
    """Return a new group whose coordinator is this broker, by default the first one."""
    return groups_on(cluster, cluster.first if broker is None else broker, 1)[0]


def _wait_for_coordinators(cluster: ClusterUnderTest, client: BrokerClient) -> None:
    """Wait until every partition of the offsets topic has a leader; the first request creates the topic."""

    def all_named() -> bool:
        names = [cluster.topics.name(f"any.{index}") for index in range(NAMES_ASKED)]
        answers = find_coordinators(client, *names).message.coordinators
        return all(answer.error_code == ErrorCode.NONE for answer in answers)

    cluster.wait_until(all_named, "the offsets topic has leaders")


def _elect_preferred_leaders(cluster: ClusterUnderTest) -> None:
    """Elect the preferred leaders of the offsets topic, which a fault of another scenario may have displaced."""
    asked = cluster.clients.ask(cluster.first)
    partitions = cluster.metadata.describe_all(OFFSETS_TOPIC)
    topic = Topic(OFFSETS_TOPIC, bytes(16), ())
    cluster.wait_until(
        lambda: all(
            found.isr == frozenset(found.replicas) for found in cluster.metadata.describe_all(OFFSETS_TOPIC).values()
        ),
        "all replicas of offsets are in sync",
    )
    for partition in partitions:
        elect_leader(asked, topic, partition=partition)


def _wait_until_served(cluster: ClusterUnderTest, group: GroupUnderTest) -> None:
    def served() -> bool:
        described = describe_groups(group.tool, group.name).message.groups[0]
        return described.error_code not in NOT_READY

    cluster.wait_until(served, f"{group.name} is served")


def form(
    groups: Sequence[GroupUnderTest], members: int = 1, *, static: bool = False, **options: Any
) -> list[list[ClassicMember]]:
    """Add `members` members to every group, with all groups in parallel; return each group's members, the leader first.

    Each member's assignment is its own name. Each further member raises the generation by one.
    With `static` the members' instance ids are `instance 1`, `instance 2` and so on.
    """
    formed: list[list[ClassicMember]] = [[] for _ in groups]
    for number in range(1, members + 1):
        if static:
            options["instance_id"] = f"instance {number}"
        joining = [group.with_id(**options) for group in groups]
        pending = [member.start_join() for member in joining]
        rejoining = []
        for group, there in zip(groups, formed, strict=True):
            if there:
                group.wait_for_state("PreparingRebalance")
            rejoining.append([(member, member.start_join()) for member in there])
        for member, there, joined, rejoined in zip(joining, formed, pending, rejoining, strict=True):
            member.joined(joined)
            for rejoins, answer in rejoined:
                rejoins.joined(answer)
            there.append(member)
        for there in formed:
            assignments = {member.member_id: b"for member %d" % place for place, member in enumerate(there, 1)}
            synced = [member.start_sync() for member in there[1:]]
            there[0].sync(assignments)
            for sync in synced:
                sync.result()
    return formed


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` for a group: Java's `String.hashCode` modulo `partitions`."""
    code = 0
    for character in group:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    magnitude = code if code < 0x80000000 else 0x100000000 - code
    return 0 if magnitude == 0x80000000 else magnitude % partitions
