"""Groups whose members move between the protocols, and observations of them.

Members of the classic protocol are consumers here: their subscriptions and assignments contain topic names,
so they are observed as partitions without topic names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode
from broker_sim_integration.clients.consumer_protocol import assignment, subscription
from broker_sim_integration.clients.groups import describe_consumer_groups, describe_groups
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.helpers.observe import concluded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from broker_sim_integration.clients.group_members import ClassicMember
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

PARTITIONS: Final = 6
TARGET_INTERVAL_MS: Final = 1100
"""Minimum time between two assignments (`group.consumer.assignment.interval.ms`), with some slack."""
ALL_HAVE_JOINED: Final = untimed("when all members have joined")


def shared_topic(cluster: ClusterUnderTest) -> Topic:
    """Return a new topic of six partitions."""
    return cluster.topics.create([cluster.first], partitions=PARTITIONS)


def subscribed(topic: Topic, owned: Sequence[int] = (), user_data: bytes | None = None) -> dict[str, bytes]:
    """Return the JoinGroup protocols of a consumer that owns these partitions."""
    return {"range": subscription([topic.name], owned={topic.name: owned}, user_data=user_data)}


def partitions_in(assigned: bytes) -> list[int]:
    """Return the partitions of the only topic in an assignment; an empty list if it is empty."""
    if not assigned:
        return []
    version = int.from_bytes(assigned[:2], "big")
    decoded = decode(messages.ConsumerProtocolAssignment, version, assigned, 2)
    return sorted(number for of in decoded.assigned_partitions for number in of.partitions)


def seen_sync(group: GroupUnderTest, step: str, reply: Reply[messages.SyncGroupResponse]) -> Iterator[Observation]:
    """Observe a SyncGroup response and the assigned partitions."""
    partitions = partitions_in(bytes(reply.message.assignment))
    version = bytes(reply.message.assignment[:2])
    reply.message.assignment = version
    yield group.seen(step, reply)
    yield concluded(f"{step}: assigned", partitions=partitions)


def seen_classic(group: GroupUnderTest, step: str) -> Observation:
    """Observe a group of consumers in DescribeGroups."""
    reply = describe_groups(group.tool, group.name)
    for member in reply.message.groups[0].members:
        # The topic in the subscription has another name in each run.
        member.member_metadata = bytes(member.member_metadata[:2])
        member.member_assignment = b"%r" % partitions_in(bytes(member.member_assignment))
    return group.seen(step, reply)


def seen_consumer(group: GroupUnderTest, step: str) -> Observation:
    """Observe a group in ConsumerGroupDescribe."""
    return group.seen(step, describe_consumer_groups(group.tool, group.name))


def seen_join(
    group: GroupUnderTest, step: str, reply: Reply[messages.JoinGroupResponse], **options: Any
) -> Observation:
    """Observe a JoinGroup response, with only the version of each member's metadata."""
    for member in reply.message.members:
        member.metadata = bytes(member.metadata[:2])
    return group.seen(step, reply, **options)


def classic_group(
    group: GroupUnderTest, topic: Topic, members: int = 1, *, static: bool = False, **options: Any
) -> list[ClassicMember]:
    """Form a group of classic members that share the partitions evenly; return the members, the leader first.

    They join one by one, so the first is the leader. With `static` their instance ids are `instance 1`,
    `instance 2` and so on.
    """
    options.setdefault("protocols", subscribed(topic))
    there: list[ClassicMember] = []
    for number in range(1, members + 1):
        if static:
            options["instance_id"] = f"instance {number}"
        member = group.with_id(**options)
        joins = [(member, member.start_join())]
        if there:
            group.wait_for_state("PreparingRebalance")
            joins += [(known, known.start_join()) for known in there]
        for joining, pending in joins:
            joining.joined(pending)
        there.append(member)
        there[0].sync(shares(topic, there))
        for known in there[1:]:
            known.sync()
    return there


def shares(topic: Topic, members: Sequence[ClassicMember]) -> Mapping[str, bytes]:
    """Return an assignment for each member: consecutive partitions, the same number for each."""
    each = PARTITIONS // len(members)
    return {
        member.member_id: assignment({topic.name: range(at * each, (at + 1) * each)})
        for at, member in enumerate(members)
    }
