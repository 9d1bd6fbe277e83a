"""Requests about groups that do not come from a member: coordinators, offsets, descriptions, deletions.

Functions `start_...` do not wait; all others return the response with its times. Requests of members
are in `broker_sim_integration.clients.group_members`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_integration.clients.raw_client import Pending, RawConnection, Reply
    from broker_sim_integration.clients.topics import Topic

__all__ = [
    "GROUP_KEY",
    "TRANSACTION_KEY",
    "Offset",
    "commit",
    "committed",
    "committed_of_groups",
    "delete_groups",
    "delete_offsets",
    "describe_consumer_groups",
    "describe_groups",
    "find_coordinator",
    "find_coordinators",
    "leave",
    "list_groups",
    "start_commit",
]

FIND_COORDINATOR_VERSION = 6
FIND_COORDINATORS_SINCE = 4
LEAVE_VERSION = 5
LEAVES_BATCHED_SINCE = 3
COMMIT_VERSION = 10
COMMIT_WITH_TOPIC_IDS = 10
OFFSET_FETCH_VERSION = 10
OFFSET_FETCH_BATCHED_SINCE = 8
OFFSET_FETCH_WITH_TOPIC_IDS = 10
OFFSET_DELETE_VERSION = 0
DELETE_GROUPS_VERSION = 2
DESCRIBE_GROUPS_VERSION = 6
LIST_GROUPS_VERSION = 5
CONSUMER_DESCRIBE_VERSION = 1

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
NO_GENERATION = -1


def find_coordinators(
    client: RawConnection, *keys: str, key_type: int = GROUP_KEY, version: int = FIND_COORDINATOR_VERSION
) -> Reply[messages.FindCoordinatorResponse]:
    """Find the coordinators of several groups; since version 4."""
    request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    return client.request(request, version, messages.FindCoordinatorResponse)


def find_coordinator(
    client: RawConnection, key: str, *, key_type: int = GROUP_KEY, version: int = 3
) -> Reply[messages.FindCoordinatorResponse]:
    """Find the coordinator of one group; before version 4, and before version 1 only for groups."""
    request = messages.FindCoordinatorRequest(key=key)
    if key_type != GROUP_KEY:
        request.key_type = key_type
    return client.request(request, version, messages.FindCoordinatorResponse)


def leave(
    client: RawConnection, group: str, *members: tuple[str, str | None], version: int = LEAVE_VERSION
) -> Reply[messages.LeaveGroupResponse]:
    """Remove members: (member id, group instance id or None); before version 3 only one."""
    request = messages.LeaveGroupRequest(group_id=group)
    if version >= LEAVES_BATCHED_SINCE:
        request.members = [request.MemberIdentity(member_id, instance_id) for member_id, instance_id in members]
    else:
        ((request.member_id, _),) = members
    return client.request(request, version, messages.LeaveGroupResponse)


@dataclass(frozen=True, slots=True)
class Offset:
    """An offset to commit for one partition."""

    topic: Topic
    partition: int
    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


def start_commit(
    client: RawConnection,
    group: str,
    *offsets: Offset,
    member_id: str = "",
    generation: int = NO_GENERATION,
    instance_id: str | None = None,
    version: int = COMMIT_VERSION,
) -> Pending[messages.OffsetCommitResponse]:
    """Send OffsetCommit, with topic ids since version 10, with names before."""
    request = messages.OffsetCommitRequest
    by_id = version >= COMMIT_WITH_TOPIC_IDS
    topics = {
        offset.topic: offset.topic.named_in(request.OffsetCommitRequestTopic(), by_id=by_id) for offset in offsets
    }
    for offset in offsets:
        partition = request.OffsetCommitRequestPartition(
            partition_index=offset.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics[offset.topic].partitions.append(partition)
    return client.send(
        request(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=list(topics.values()),
        ),
        version,
        messages.OffsetCommitResponse,
    )


def commit(
    client: RawConnection, group: str, *offsets: Offset, version: int = COMMIT_VERSION
) -> Reply[messages.OffsetCommitResponse]:
    """Commit without being a member, as tools and consumers without group management do, and wait for the response."""
    return start_commit(client, group, *offsets, version=version).result()


def committed(
    client: RawConnection,
    group: str,
    partitions: Mapping[Topic, Sequence[int]] | None = None,
    *,
    require_stable: bool = False,
    member_id: str | None = None,
    member_epoch: int = NO_GENERATION,
    version: int = OFFSET_FETCH_VERSION,
) -> Reply[messages.OffsetFetchResponse]:
    """Fetch the committed offsets of one group; None means all of its partitions."""
    request = messages.OffsetFetchRequest
    if version >= OFFSET_FETCH_BATCHED_SINCE:
        wanted = _wanted(group, partitions, version)
        wanted.member_id = member_id
        wanted.member_epoch = member_epoch
        message = request(groups=[wanted], require_stable=require_stable)
    else:
        topics = (
            None
            if partitions is None
            else [request.OffsetFetchRequestTopic(topic.name, list(indexes)) for topic, indexes in partitions.items()]
        )
        message = request(group_id=group, topics=topics, require_stable=require_stable)
    return client.request(message, version, messages.OffsetFetchResponse)


def committed_of_groups(
    client: RawConnection,
    groups: Mapping[str, Mapping[Topic, Sequence[int]] | None],
    *,
    require_stable: bool = False,
    version: int = OFFSET_FETCH_VERSION,
) -> Reply[messages.OffsetFetchResponse]:
    """Fetch the committed offsets of several groups; since version 8."""
    request = messages.OffsetFetchRequest(
        groups=[_wanted(group, partitions, version) for group, partitions in groups.items()],
        require_stable=require_stable,
    )
    return client.request(request, version, messages.OffsetFetchResponse)


def _wanted(
    group: str, partitions: Mapping[Topic, Sequence[int]] | None, version: int
) -> messages.OffsetFetchRequest.OffsetFetchRequestGroup:
    request = messages.OffsetFetchRequest
    wanted = request.OffsetFetchRequestGroup(group_id=group, topics=None)
    if partitions is None:
        return wanted
    wanted.topics = []
    for topic, indexes in partitions.items():
        asked = request.OffsetFetchRequestTopics(partition_indexes=list(indexes))
        by_id = version >= OFFSET_FETCH_WITH_TOPIC_IDS
        wanted.topics.append(topic.named_in(asked, by_id=by_id))
    return wanted


def delete_offsets(
    client: RawConnection, group: str, partitions: Mapping[str, Sequence[int]]
) -> Reply[messages.OffsetDeleteResponse]:
    """Delete committed offsets of a group, given partitions by topic name."""
    request = messages.OffsetDeleteRequest
    topics = [
        request.OffsetDeleteRequestTopic(name, [request.OffsetDeleteRequestPartition(index) for index in indexes])
        for name, indexes in partitions.items()
    ]
    return client.request(request(group, topics), OFFSET_DELETE_VERSION, messages.OffsetDeleteResponse)


def delete_groups(
    client: RawConnection, *groups: str, version: int = DELETE_GROUPS_VERSION
) -> Reply[messages.DeleteGroupsResponse]:
    """Delete groups; return the response."""
    request = messages.DeleteGroupsRequest(groups_names=list(groups))
    return client.request(request, version, messages.DeleteGroupsResponse)


def describe_groups(
    client: RawConnection, *groups: str, authorized: bool = False, version: int = DESCRIBE_GROUPS_VERSION
) -> Reply[messages.DescribeGroupsResponse]:
    """Describe groups with the classic protocol."""
    request = messages.DescribeGroupsRequest(groups=list(groups))
    if authorized:
        request.include_authorized_operations = True
    return client.request(request, version, messages.DescribeGroupsResponse)


def list_groups(
    client: RawConnection, *, states: Sequence[str] = (), types: Sequence[str] = (), version: int = LIST_GROUPS_VERSION
) -> Reply[messages.ListGroupsResponse]:
    """List the groups that a broker coordinates, filtered by states and types if given."""
    request = messages.ListGroupsRequest()
    if states:
        request.states_filter = list(states)
    if types:
        request.types_filter = list(types)
    return client.request(request, version, messages.ListGroupsResponse)


def describe_consumer_groups(
    client: RawConnection, *groups: str, authorized: bool = False, version: int = CONSUMER_DESCRIBE_VERSION
) -> Reply[messages.ConsumerGroupDescribeResponse]:
    """Describe groups with the consumer protocol (KIP-848)."""
    request = messages.ConsumerGroupDescribeRequest(list(groups), authorized)
    return client.request(request, version, messages.ConsumerGroupDescribeResponse)
