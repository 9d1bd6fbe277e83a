"""The rows of the table about share groups, including APIs for all types of groups.

Error messages are compared, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim.share.share_state import SharePartitionKey, WrittenState
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE, InitialState, NoArguments, ReaderEpoch
from broker_sim_integration.acls.names import (
    CLUSTER_RESOURCE,
    GROUP,
    GROUP_RESOURCE,
    MEMBER,
    NEW_RESOURCE,
    NEW_TOPIC,
    SHARE_GROUP,
    SHARE_RESOURCE,
    STATE_GROUP,
    STATE_RESOURCE,
    TOPIC,
    TOPIC_RESOURCE,
)
from broker_sim_integration.acls.situation import GuardedRequest, by_id, fixed

if TYPE_CHECKING:
    from broker_sim.share.state_apis import StateApi

ACCEPT: Final = 1
TWO_TOPICS: Final = (TOPIC, NEW_TOPIC)
SOME_KEY: Final = SharePartitionKey(SHARE_GROUP, bytes(range(16)), 0)
"""A share partition; its coordinator can be found although the topic does not exist."""


def share_requests() -> list[GuardedRequest]:
    """Return the rows of share groups; the oldest ones are compared without error messages."""
    acknowledge = messages.ShareAcknowledgeRequest
    begun = partial(_fetch, GROUP, 0)
    rows = [*_sessions(), *_groups(), *_offsets(), *_states(), *_by_other_apis()]
    return [
        by_id("ShareFetch", begun, 2, GROUP_RESOURCE, TOPIC_RESOURCE),
        fixed("ShareAcknowledge", acknowledge(GROUP, MEMBER), 2, GROUP_RESOURCE),
        *(replace(row, has_texts=True) for row in rows),
    ]


def _fetch(
    group_id: str, epoch: int, topic_id: bytes, *, names: bool = True, acknowledges: bool = False
) -> messages.ShareFetchRequest:
    """Return a request for no records, which a client may repeat."""
    fetch = messages.ShareFetchRequest
    batches = [fetch.AcknowledgementBatch(0, 0, [ACCEPT])] if acknowledges else []
    topic = fetch.FetchTopic(topic_id, [fetch.FetchPartition(0, acknowledgement_batches=batches)])
    request = fetch(group_id, MEMBER, epoch, max_bytes=1_000)
    if names:
        request.topics = [topic]
    return request


def _acknowledge(epoch: int, topic_id: bytes) -> messages.ShareAcknowledgeRequest:
    """Return a request that acknowledges a record that the member has not acquired."""
    request = messages.ShareAcknowledgeRequest
    batches = [request.AcknowledgementBatch(0, 0, [ACCEPT])]
    topic = request.AcknowledgeTopic(topic_id, [request.AcknowledgePartition(0, batches)])
    return request(STATE_GROUP, MEMBER, epoch, topics=[topic])


def _unknown(topic_id: bytes) -> bytes:
    """Return the id of a topic that does not exist."""
    return bytes(255 - byte for byte in topic_id)


def _sessions() -> list[GuardedRequest]:
    """Return requests in a session that the super user has opened: sessions have no owner."""
    group, topic = STATE_RESOURCE, TOPIC_RESOURCE
    begin = partial(_fetch, STATE_GROUP, 0)
    go_on = partial(_fetch, STATE_GROUP, 1)
    rows = [
        by_id("ShareFetch of a session", partial(go_on, names=False), 2, group, topic),
        by_id("ShareFetch with acknowledgements", partial(go_on, acknowledges=True), 2, group, topic),
        by_id("ShareAcknowledge of a record", partial(_acknowledge, 1), 2, group, topic),
    ]
    return [
        *(replace(row, before=begin) for row in rows),
        by_id(
            "ShareFetch of an unknown topic id", lambda topic_id: _fetch(STATE_GROUP, 0, _unknown(topic_id)), 2, group
        ),
        replace(
            by_id(
                "ShareAcknowledge of an unknown topic id",
                lambda topic_id: _acknowledge(1, _unknown(topic_id)),
                2,
                group,
            ),
            before=begin,
        ),
    ]


def _groups() -> list[GuardedRequest]:
    heartbeat, describe = messages.ShareGroupHeartbeatRequest, messages.ShareGroupDescribeRequest
    nobody = partial(heartbeat, SHARE_GROUP, "nobody", 3)
    return [
        fixed("ShareGroupHeartbeat", nobody(subscribed_topic_names=[TOPIC]), 1, SHARE_RESOURCE, TOPIC_RESOURCE),
        fixed(
            "ShareGroupHeartbeat with two topics",
            nobody(subscribed_topic_names=list(TWO_TOPICS)),
            1,
            SHARE_RESOURCE,
            TOPIC_RESOURCE,
            NEW_RESOURCE,
        ),
        fixed(
            "ShareGroupDescribe",
            describe([SHARE_GROUP], include_authorized_operations=True),
            1,
            SHARE_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed(
            "ShareGroupDescribe of two groups",
            describe([SHARE_GROUP, STATE_GROUP], include_authorized_operations=True),
            1,
            SHARE_RESOURCE,
            STATE_RESOURCE,
            TOPIC_RESOURCE,
        ),
    ]


def _offsets() -> list[GuardedRequest]:
    describe = messages.DescribeShareGroupOffsetsRequest
    alter = messages.AlterShareGroupOffsetsRequest
    delete = messages.DeleteShareGroupOffsetsRequest

    def described(*names: str, group_id: str = STATE_GROUP) -> Any:
        topics = [describe.DescribeShareGroupOffsetsRequestTopic(name, [0]) for name in names]
        return describe.DescribeShareGroupOffsetsRequestGroup(group_id, topics if names else None)

    def altered(*names: str) -> messages.AlterShareGroupOffsetsRequest:
        partition = alter.AlterShareGroupOffsetsRequestPartition(0, 0)
        topic = alter.AlterShareGroupOffsetsRequestTopic
        return alter(STATE_GROUP, [topic(name, [partition]) for name in names])

    def begin_anew(_: bytes) -> messages.AlterShareGroupOffsetsRequest:
        return altered(TOPIC)

    def deleted(*names: str) -> messages.DeleteShareGroupOffsetsRequest:
        topic = delete.DeleteShareGroupOffsetsRequestTopic
        return delete(STATE_GROUP, [topic(name) for name in names])

    one, two = (STATE_RESOURCE, TOPIC_RESOURCE), (STATE_RESOURCE, TOPIC_RESOURCE, NEW_RESOURCE)
    return [
        fixed("DescribeShareGroupOffsets", describe([described(TOPIC)]), 1, *one),
        fixed("DescribeShareGroupOffsets of all topics", describe([described()]), 1, *one),
        fixed("DescribeShareGroupOffsets of two topics", describe([described(*TWO_TOPICS)]), 1, *two),
        fixed(
            "DescribeShareGroupOffsets of two groups",
            describe([described(TOPIC), described(TOPIC, group_id=SHARE_GROUP)]),
            1,
            STATE_RESOURCE,
            SHARE_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed("AlterShareGroupOffsets", altered(TOPIC), 0, *one),
        fixed("AlterShareGroupOffsets of two topics", altered(*TWO_TOPICS), 0, *two),
        replace(fixed("DeleteShareGroupOffsets", deleted(TOPIC), 0, *one), before=begin_anew),
        replace(fixed("DeleteShareGroupOffsets of two topics", deleted(*TWO_TOPICS), 0, *two), before=begin_anew),
    ]


def _states() -> list[GuardedRequest]:
    """Return the requests of brokers to share coordinators, for a group used here only."""

    def request(api: StateApi, arguments: Any, topic_id: bytes) -> Any:
        return api.request_of("acl-no-group", [(SharePartitionKey("", topic_id, 0), arguments)])

    return [
        by_id(f"{name}ShareGroupState{of}", partial(request, api, arguments), 0, CLUSTER_RESOURCE)
        for name, of, api, arguments in (
            ("Initialize", "", INITIALIZE, InitialState(1, 0)),
            ("Read", "", READ, ReaderEpoch(0)),
            ("Write", "", WRITE, WrittenState(1, 0, 0, 0, ())),
            ("Read", "Summary", SUMMARY, ReaderEpoch(0)),
            ("Delete", "", DELETE, NoArguments()),
        )
    ]


def _by_other_apis() -> list[GuardedRequest]:
    """Return requests of other groups' APIs that name a share group."""
    group, topic = SHARE_RESOURCE, TOPIC_RESOURCE
    find, listed = messages.FindCoordinatorRequest, messages.ListGroupsRequest
    fetch, commit = messages.OffsetFetchRequest, messages.OffsetCommitRequest
    delete, join = messages.OffsetDeleteRequest, messages.JoinGroupRequest
    return [
        fixed(
            "FindCoordinator of a share partition",
            find(key_type=2, coordinator_keys=[SOME_KEY.coordinator_key()]),
            6,
            CLUSTER_RESOURCE,
        ),
        fixed("ListGroups of share groups", listed(types_filter=["share"]), 5, group),
        fixed("DescribeGroups of a share group", _describe_group(), 6, group),
        fixed(
            "ConsumerGroupDescribe of a share group",
            messages.ConsumerGroupDescribeRequest([SHARE_GROUP], True),
            1,
            group,
        ),
        fixed(
            "ConsumerGroupHeartbeat of a share group",
            messages.ConsumerGroupHeartbeatRequest(SHARE_GROUP, "nobody", 3, subscribed_topic_names=[TOPIC]),
            1,
            group,
            topic,
        ),
        fixed(
            "JoinGroup of a share group",
            join(
                SHARE_GROUP,
                30_000,
                30_000,
                "nobody",
                protocol_type="consumer",
                protocols=[join.JoinGroupRequestProtocol("range", b"")],
            ),
            9,
            group,
        ),
        fixed(
            "OffsetFetch of a share group",
            fetch(
                groups=[
                    fetch.OffsetFetchRequestGroup(
                        SHARE_GROUP, topics=[fetch.OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
                    )
                ]
            ),
            8,
            group,
            topic,
        ),
        fixed(
            "OffsetCommit of a share group",
            commit(
                SHARE_GROUP,
                -1,
                "",
                topics=[commit.OffsetCommitRequestTopic(TOPIC, partitions=[commit.OffsetCommitRequestPartition(0, 5)])],
            ),
            9,
            group,
            topic,
        ),
        fixed(
            "OffsetDelete of a share group",
            delete(SHARE_GROUP, [delete.OffsetDeleteRequestTopic(TOPIC, [delete.OffsetDeleteRequestPartition(0)])]),
            0,
            group,
            topic,
        ),
        fixed("DeleteGroups of a share group", messages.DeleteGroupsRequest([SHARE_GROUP]), 2, group),
    ]


def _describe_group() -> messages.DescribeGroupsRequest:
    return messages.DescribeGroupsRequest([SHARE_GROUP], include_authorized_operations=True)
