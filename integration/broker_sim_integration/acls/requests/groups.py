"""Requests about classic groups, groups of the consumer protocol, and their offsets."""

from __future__ import annotations

from broker_sim.metadata.acl import ResourceType
from broker_sim.protocol import messages
from broker_sim_integration.acls.names import (
    CLUSTER_RESOURCE,
    GROUP,
    GROUP_RESOURCE,
    ID_RESOURCE,
    TOPIC,
    TOPIC_RESOURCE,
    TRANSACTIONAL_ID,
)
from broker_sim_integration.acls.situation import GuardedRequest, by_id, fixed


def groups_requests() -> list[GuardedRequest]:
    """Return the requests with the resources on which they need rights."""
    join, sync = messages.JoinGroupRequest, messages.SyncGroupRequest
    commit, delete = messages.OffsetCommitRequest, messages.OffsetDeleteRequest
    fetch, txn = messages.OffsetFetchRequest, messages.TxnOffsetCommitRequest
    member, epoch = "nobody", 3
    find = messages.FindCoordinatorRequest
    return [
        fixed("FindCoordinator of a group", find(key_type=0, coordinator_keys=[GROUP]), 4, GROUP_RESOURCE),
        fixed("FindCoordinator of a group, alone", find(GROUP, 0), 3, GROUP_RESOURCE),
        fixed(
            "FindCoordinator of a transactional id",
            find(key_type=1, coordinator_keys=[TRANSACTIONAL_ID]),
            4,
            ID_RESOURCE,
        ),
        fixed(
            "JoinGroup",
            join(
                GROUP,
                30_000,
                30_000,
                member,
                protocol_type="consumer",
                protocols=[join.JoinGroupRequestProtocol("range", b"")],
            ),
            9,
            GROUP_RESOURCE,
        ),
        fixed("SyncGroup", sync(GROUP, 1, member, protocol_type="consumer", protocol_name="range"), 5, GROUP_RESOURCE),
        fixed("Heartbeat", messages.HeartbeatRequest(GROUP, 1, member), 4, GROUP_RESOURCE),
        fixed(
            "LeaveGroup",
            messages.LeaveGroupRequest(GROUP, members=[messages.LeaveGroupRequest.MemberIdentity(member)]),
            5,
            GROUP_RESOURCE,
        ),
        fixed(
            "ConsumerGroupHeartbeat",
            messages.ConsumerGroupHeartbeatRequest(GROUP, member, epoch, subscribed_topic_names=[TOPIC]),
            1,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "DescribeGroups",
            messages.DescribeGroupsRequest([GROUP], include_authorized_operations=True),
            5,
            GROUP_RESOURCE,
        ),
        fixed(
            "ConsumerGroupDescribe",
            messages.ConsumerGroupDescribeRequest([GROUP], include_authorized_operations=True),
            1,
            GROUP_RESOURCE,
        ),
        fixed("ListGroups", messages.ListGroupsRequest(), 5, GROUP_RESOURCE),
        fixed("ListGroups in the cluster", messages.ListGroupsRequest(), 5, CLUSTER_RESOURCE),
        fixed("DeleteGroups", messages.DeleteGroupsRequest(["acl-no-group"]), 2, _no_group()),
        fixed(
            "OffsetCommit",
            commit(
                GROUP,
                -1,
                "",
                topics=[commit.OffsetCommitRequestTopic(TOPIC, partitions=[commit.OffsetCommitRequestPartition(0, 5)])],
            ),
            9,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        by_id(
            "OffsetCommit by id",
            lambda topic_id: commit(
                GROUP,
                -1,
                "",
                topics=[
                    commit.OffsetCommitRequestTopic(
                        topic_id=topic_id, partitions=[commit.OffsetCommitRequestPartition(0, 5)]
                    )
                ],
            ),
            10,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "OffsetFetch",
            fetch(
                groups=[
                    fetch.OffsetFetchRequestGroup(
                        GROUP, topics=[fetch.OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
                    )
                ]
            ),
            8,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "OffsetFetch of one group",
            fetch(group_id=GROUP, topics=[fetch.OffsetFetchRequestTopic(TOPIC, [0])]),
            7,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "OffsetFetch of all topics",
            fetch(groups=[fetch.OffsetFetchRequestGroup(GROUP, topics=None)]),
            9,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "OffsetDelete",
            delete(GROUP, [delete.OffsetDeleteRequestTopic(TOPIC, [delete.OffsetDeleteRequestPartition(7)])]),
            0,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "TxnOffsetCommit",
            txn(
                TRANSACTIONAL_ID,
                GROUP,
                4_000_000,
                0,
                -1,
                "",
                topics=[txn.TxnOffsetCommitRequestTopic(TOPIC, partitions=[txn.TxnOffsetCommitRequestPartition(0, 5)])],
            ),
            3,
            ID_RESOURCE,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
        ),
    ]


def _no_group() -> tuple[ResourceType, str]:
    return ResourceType.GROUP, "acl-no-group"
