"""The requests of the table: each API, once for each kind of resource whose rights it needs.

Each can be repeated: an allowed request changes nothing, or fails for another reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.cluster.requests import fetch_request, produce_request
from broker_sim.metadata.acl import CLUSTER_NAME, WILDCARD, ResourceType
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch
from integration.acls.situation import Asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.protocol.message import Message

__all__ = ["GROUP", "NEW_TOPIC", "OTHER_USER", "TABLE", "TOPIC", "TRANSACTIONAL_ID"]

TOPIC: Final = "acl-topic"
NEW_TOPIC: Final = "acl-new"
GROUP: Final = "acl-group"
TRANSACTIONAL_ID: Final = "acl-id"
OTHER_USER: Final = "User:acl-owner"

_TOPIC: Final = (ResourceType.TOPIC, TOPIC)
_NEW: Final = (ResourceType.TOPIC, NEW_TOPIC)
_GROUP: Final = (ResourceType.GROUP, GROUP)
_ID: Final = (ResourceType.TRANSACTIONAL_ID, TRANSACTIONAL_ID)
_CLUSTER: Final = (ResourceType.CLUSTER, CLUSTER_NAME)
_TOKENS: Final = (ResourceType.DELEGATION_TOKEN, WILDCARD)
_OTHER: Final = (ResourceType.USER, OTHER_USER)


def _fixed(
    name: str, message: Message, version: int, *resources: tuple[ResourceType, str]
) -> Asked:
    return Asked(name, lambda _: message, version, resources)


def _by_id(
    name: str,
    make: Callable[[bytes], Message],
    version: int,
    *resources: tuple[ResourceType, str],
) -> Asked:
    return Asked(name, make, version, resources)


def _produce_by_id(topic_id: bytes) -> messages.ProduceRequest:
    request = produce_request((TOPIC, 0))
    request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id
    return request


def _fetch_by_id(topic_id: bytes) -> messages.FetchRequest:
    request = fetch_request((TOPIC, 0), max_wait_ms=0)
    request.topics[0].topic, request.topics[0].topic_id = "", topic_id
    return request


def _transactional_produce() -> messages.ProduceRequest:
    batch = build_batch(
        (b"v",), producer_id=4_000_000, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    request = produce_request((TOPIC, 0), batch=batch)
    request.transactional_id = TRANSACTIONAL_ID
    return request


def _data() -> list[Asked]:
    list_offsets = messages.ListOffsetsRequest
    delete_records = messages.DeleteRecordsRequest
    epochs = messages.OffsetForLeaderEpochRequest
    return [
        _fixed("Produce", produce_request((TOPIC, 0)), 9, _TOPIC),
        _by_id("Produce by id", _produce_by_id, 13, _TOPIC),
        _fixed("Produce to an unknown topic", produce_request((NEW_TOPIC, 0)), 9, _NEW),
        _fixed("Produce in a transaction", _transactional_produce(), 9, _ID, _TOPIC),
        _fixed("Fetch", fetch_request((TOPIC, 0), max_wait_ms=0), 12, _TOPIC),
        _by_id("Fetch by id", _fetch_by_id, 13, _TOPIC),
        _fixed("Fetch of an unknown topic", fetch_request((NEW_TOPIC, 0), max_wait_ms=0), 12, _NEW),
        _fixed(
            "Fetch of a follower",
            fetch_request((TOPIC, 9), max_wait_ms=0, replica_id=1),
            12,
            _CLUSTER,
        ),
        _fixed(
            "ListOffsets",
            list_offsets(
                replica_id=-1,
                topics=[
                    list_offsets.ListOffsetsTopic(
                        TOPIC, [list_offsets.ListOffsetsPartition(0, timestamp=-2)]
                    )
                ],
            ),
            7,
            _TOPIC,
        ),
        _fixed(
            "DeleteRecords",
            delete_records(
                [
                    delete_records.DeleteRecordsTopic(
                        TOPIC, [delete_records.DeleteRecordsPartition(0, 0)]
                    )
                ],
                1_000,
            ),
            2,
            _TOPIC,
        ),
        _fixed(
            "OffsetForLeaderEpoch",
            epochs(
                replica_id=-1,
                topics=[
                    epochs.OffsetForLeaderTopic(
                        TOPIC, [epochs.OffsetForLeaderPartition(0, -1, leader_epoch=0)]
                    )
                ],
            ),
            4,
            _TOPIC,
        ),
        _fixed(
            "OffsetForLeaderEpoch as a broker",
            epochs(
                replica_id=-1,
                topics=[
                    epochs.OffsetForLeaderTopic(
                        TOPIC, [epochs.OffsetForLeaderPartition(0, -1, leader_epoch=0)]
                    )
                ],
            ),
            4,
            _CLUSTER,
        ),
    ]


def _share_partitions() -> list[Asked]:
    fetch, acknowledge = messages.ShareFetchRequest, messages.ShareAcknowledgeRequest
    member = "member"

    def begin_session(topic_id: bytes) -> messages.ShareFetchRequest:
        """Return a request for no records, which a client may send again and again."""
        topic = fetch.FetchTopic(topic_id, [fetch.FetchPartition(0)])
        return fetch(GROUP, member, max_bytes=1_000, topics=[topic])

    return [
        _by_id("ShareFetch", begin_session, 2, _GROUP, _TOPIC),
        _fixed("ShareAcknowledge", acknowledge(GROUP, member), 2, _GROUP),
    ]


def _topics() -> list[Asked]:
    metadata = messages.MetadataRequest
    topic = metadata.MetadataRequestTopic
    create, more = messages.CreateTopicsRequest, messages.CreatePartitionsRequest
    described = messages.DescribeTopicPartitionsRequest
    creation = create([create.CreatableTopic(NEW_TOPIC, 1, 1)], 1_000, validate_only=True)
    asks = {"include_topic_authorized_operations": True}
    return [
        _fixed("Metadata", metadata([topic(name=TOPIC)], False, **asks), 9, _TOPIC),
        _fixed("Metadata of all topics", metadata(None, False, **asks), 12, _TOPIC),
        _by_id(
            "Metadata by id",
            lambda topic_id: metadata([topic(topic_id, None)], False, **asks),
            12,
            _TOPIC,
        ),
        _fixed("Metadata of an unknown topic", metadata([topic(name=NEW_TOPIC)], False), 9, _NEW),
        _fixed(
            "Metadata of the cluster",
            metadata([], False, include_cluster_authorized_operations=True),
            8,
            _CLUSTER,
        ),
        _fixed("DescribeTopicPartitions", described([described.TopicRequest(TOPIC)]), 0, _TOPIC),
        _fixed("DescribeTopicPartitions of all topics", described([]), 0, _TOPIC),
        _fixed("CreateTopics", creation, 7, _NEW),
        _fixed("CreateTopics in the cluster", creation, 7, _CLUSTER),
        _fixed(
            "CreatePartitions",
            more([more.CreatePartitionsTopic(TOPIC, 2)], 1_000, validate_only=True),
            3,
            _TOPIC,
        ),
        _fixed(
            "DeleteTopics",
            messages.DeleteTopicsRequest(
                [messages.DeleteTopicsRequest.DeleteTopicState(NEW_TOPIC)], timeout_ms=1_000
            ),
            6,
            _NEW,
        ),
        _fixed(
            "DeleteTopics in the cluster",
            messages.DeleteTopicsRequest(
                [messages.DeleteTopicsRequest.DeleteTopicState(NEW_TOPIC)], timeout_ms=1_000
            ),
            6,
            _CLUSTER,
        ),
    ]


def _groups() -> list[Asked]:
    join, sync = messages.JoinGroupRequest, messages.SyncGroupRequest
    commit, delete = messages.OffsetCommitRequest, messages.OffsetDeleteRequest
    fetch, txn = messages.OffsetFetchRequest, messages.TxnOffsetCommitRequest
    member, epoch = "nobody", 3
    find = messages.FindCoordinatorRequest
    return [
        _fixed("FindCoordinator of a group", find(key_type=0, coordinator_keys=[GROUP]), 4, _GROUP),
        _fixed("FindCoordinator of a group, alone", find(GROUP, 0), 3, _GROUP),
        _fixed(
            "FindCoordinator of a transactional id",
            find(key_type=1, coordinator_keys=[TRANSACTIONAL_ID]),
            4,
            _ID,
        ),
        _fixed(
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
            _GROUP,
        ),
        _fixed(
            "SyncGroup",
            sync(GROUP, 1, member, protocol_type="consumer", protocol_name="range"),
            5,
            _GROUP,
        ),
        _fixed("Heartbeat", messages.HeartbeatRequest(GROUP, 1, member), 4, _GROUP),
        _fixed(
            "LeaveGroup",
            messages.LeaveGroupRequest(
                GROUP, members=[messages.LeaveGroupRequest.MemberIdentity(member)]
            ),
            5,
            _GROUP,
        ),
        _fixed(
            "ConsumerGroupHeartbeat",
            messages.ConsumerGroupHeartbeatRequest(
                GROUP, member, epoch, subscribed_topic_names=[TOPIC]
            ),
            1,
            _GROUP,
            _TOPIC,
        ),
        _fixed(
            "DescribeGroups",
            messages.DescribeGroupsRequest([GROUP], include_authorized_operations=True),
            5,
            _GROUP,
        ),
        _fixed(
            "ConsumerGroupDescribe",
            messages.ConsumerGroupDescribeRequest([GROUP], include_authorized_operations=True),
            1,
            _GROUP,
        ),
        _fixed("ListGroups", messages.ListGroupsRequest(), 5, _GROUP),
        _fixed("ListGroups in the cluster", messages.ListGroupsRequest(), 5, _CLUSTER),
        _fixed("DeleteGroups", messages.DeleteGroupsRequest(["acl-no-group"]), 2, _no_group()),
        _fixed(
            "OffsetCommit",
            commit(
                GROUP,
                -1,
                "",
                topics=[
                    commit.OffsetCommitRequestTopic(
                        TOPIC, partitions=[commit.OffsetCommitRequestPartition(0, 5)]
                    )
                ],
            ),
            9,
            _GROUP,
            _TOPIC,
        ),
        _by_id(
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
            _GROUP,
            _TOPIC,
        ),
        _fixed(
            "OffsetFetch",
            fetch(
                groups=[
                    fetch.OffsetFetchRequestGroup(
                        GROUP, topics=[fetch.OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
                    )
                ]
            ),
            8,
            _GROUP,
            _TOPIC,
        ),
        _fixed(
            "OffsetFetch of one group",
            fetch(group_id=GROUP, topics=[fetch.OffsetFetchRequestTopic(TOPIC, [0])]),
            7,
            _GROUP,
            _TOPIC,
        ),
        _fixed(
            "OffsetFetch of all topics",
            fetch(groups=[fetch.OffsetFetchRequestGroup(GROUP, topics=None)]),
            9,
            _GROUP,
            _TOPIC,
        ),
        _fixed(
            "OffsetDelete",
            delete(
                GROUP,
                [delete.OffsetDeleteRequestTopic(TOPIC, [delete.OffsetDeleteRequestPartition(7)])],
            ),
            0,
            _GROUP,
            _TOPIC,
        ),
        _fixed(
            "TxnOffsetCommit",
            txn(
                TRANSACTIONAL_ID,
                GROUP,
                4_000_000,
                0,
                -1,
                "",
                topics=[
                    txn.TxnOffsetCommitRequestTopic(
                        TOPIC, [txn.TxnOffsetCommitRequestPartition(0, 5)]
                    )
                ],
            ),
            3,
            _ID,
            _GROUP,
            _TOPIC,
        ),
    ]


def _no_group() -> tuple[ResourceType, str]:
    return ResourceType.GROUP, "acl-no-group"


def _transactions() -> list[Asked]:
    add, markers = messages.AddPartitionsToTxnRequest, messages.WriteTxnMarkersRequest
    init, producers = messages.InitProducerIdRequest, messages.DescribeProducersRequest
    topic = add.AddPartitionsToTxnTopic(TOPIC, [0])
    batch = [
        add.AddPartitionsToTxnTransaction(TRANSACTIONAL_ID, 4_000_000, 0, True, topics=[topic])
    ]
    marker = markers.WritableTxnMarker(
        4_000_000, 0, False, [markers.WritableTxnMarkerTopic(TOPIC, [9])], 0
    )
    return [
        _fixed("InitProducerId", init(TRANSACTIONAL_ID, 60_000, -1, -1), 4, _ID),
        _fixed("InitProducerId of an idempotent producer", init(None, 60_000), 4, _CLUSTER),
        _fixed("InitProducerId of who may write", init(None, 60_000), 4, _TOPIC),
        _fixed(
            "AddPartitionsToTxn",
            add(
                v3_and_below_transactional_id=TRANSACTIONAL_ID,
                v3_and_below_producer_id=4_000_000,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[topic],
            ),
            3,
            _ID,
            _TOPIC,
        ),
        _fixed("AddPartitionsToTxn as a broker", add(transactions=batch), 5, _CLUSTER),
        _fixed(
            "AddOffsetsToTxn",
            messages.AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 4_000_000, 0, GROUP),
            3,
            _ID,
            _GROUP,
        ),
        _fixed("EndTxn", messages.EndTxnRequest(TRANSACTIONAL_ID, 4_000_000, 0, True), 3, _ID),
        _fixed("WriteTxnMarkers", markers([marker]), 1, _CLUSTER),
        _fixed(
            "DescribeTransactions",
            messages.DescribeTransactionsRequest([TRANSACTIONAL_ID]),
            0,
            _ID,
        ),
        _fixed("ListTransactions", messages.ListTransactionsRequest(), 0, _ID),
        _fixed(
            "DescribeProducers",
            producers([producers.TopicRequest(TOPIC, [0])]),
            0,
            _TOPIC,
        ),
    ]


def _configs() -> list[Asked]:
    described, alter = messages.DescribeConfigsRequest, messages.AlterConfigsRequest
    incremental = messages.IncrementalAlterConfigsRequest

    def describe(kind: int, name: str) -> messages.DescribeConfigsRequest:
        keys = ["no.such.key"]
        return described([described.DescribeConfigsResource(kind, name, keys)])

    def replace(kind: int, name: str) -> messages.AlterConfigsRequest:
        return alter([alter.AlterConfigsResource(kind, name)], validate_only=True)

    def change(kind: int, name: str) -> messages.IncrementalAlterConfigsRequest:
        return incremental([incremental.AlterConfigsResource(kind, name)], validate_only=True)

    return [
        _fixed("DescribeLogDirs", messages.DescribeLogDirsRequest([]), 4, _CLUSTER),
        _fixed("DescribeConfigs of a topic", describe(2, TOPIC), 4, _TOPIC),
        _fixed("DescribeConfigs of a broker", describe(4, "1"), 4, _CLUSTER),
        _fixed("DescribeConfigs of loggers", describe(8, "1"), 4, _CLUSTER),
        _fixed("DescribeConfigs of client metrics", describe(16, "m"), 4, _CLUSTER),
        _fixed("DescribeConfigs of a group", describe(32, GROUP), 4, _GROUP),
        _fixed("AlterConfigs of a topic", replace(2, TOPIC), 2, _TOPIC),
        _fixed("AlterConfigs of a broker", replace(4, "1"), 2, _CLUSTER),
        _fixed("IncrementalAlterConfigs of a topic", change(2, TOPIC), 1, _TOPIC),
        _fixed("IncrementalAlterConfigs of a broker", change(4, "1"), 1, _CLUSTER),
        _fixed("IncrementalAlterConfigs of loggers", change(8, "1"), 1, _CLUSTER),
        _fixed("IncrementalAlterConfigs of a group", change(32, GROUP), 1, _GROUP),
        _fixed("ListConfigResources", messages.ListConfigResourcesRequest([4]), 1, _CLUSTER),
    ]


def _cluster() -> list[Asked]:
    elect, moves = messages.ElectLeadersRequest, messages.AlterPartitionReassignmentsRequest
    listed, quorum = messages.ListPartitionReassignmentsRequest, messages.DescribeQuorumRequest
    scram, acls = messages.AlterUserScramCredentialsRequest, messages.CreateAclsRequest
    deleted, quotas = messages.DeleteAclsRequest, messages.AlterClientQuotasRequest
    quota = quotas.EntryData([quotas.EntityData("user", "nobody")])
    move = moves.ReassignableTopic(TOPIC, [moves.ReassignablePartition(0, None)])
    return [
        _fixed("ApiVersions", messages.ApiVersionsRequest("table", "1"), 3, _CLUSTER),
        _fixed(
            "DescribeCluster",
            messages.DescribeClusterRequest(include_cluster_authorized_operations=True),
            1,
            _CLUSTER,
        ),
        _fixed(
            "DescribeQuorum",
            quorum([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])]),
            1,
            _CLUSTER,
        ),
        _fixed("ElectLeaders", elect(0, [elect.TopicPartitions(TOPIC, [0])], 1_000), 2, _CLUSTER),
        _fixed("AlterPartitionReassignments", moves(1_000, True, [move]), 1, _CLUSTER),
        _fixed(
            "ListPartitionReassignments",
            listed(1_000, [listed.ListPartitionReassignmentsTopics(TOPIC, [0])]),
            0,
            _CLUSTER,
        ),
        _fixed(
            "UpdateFeatures",
            messages.UpdateFeaturesRequest(
                1_000,
                [messages.UpdateFeaturesRequest.FeatureUpdateKey("no.such.feature", 1)],
                validate_only=True,
            ),
            1,
            _CLUSTER,
        ),
        _fixed(
            "DescribeUserScramCredentials",
            messages.DescribeUserScramCredentialsRequest([]),
            0,
            _CLUSTER,
        ),
        _fixed(
            "AlterUserScramCredentials",
            scram([scram.ScramCredentialDeletion("nobody", 1)]),
            0,
            _CLUSTER,
        ),
        _fixed("DescribeClientQuotas", messages.DescribeClientQuotasRequest(), 1, _CLUSTER),
        _fixed("AlterClientQuotas", quotas([quota], validate_only=True), 1, _CLUSTER),
        _fixed(
            "CreateAcls",
            acls([acls.AclCreation(2, "", 3, "User:nobody", "*", 3, 3)]),
            3,
            _CLUSTER,
        ),
        _fixed(
            "DescribeAcls",
            messages.DescribeAclsRequest(2, "acl-none", 3, None, None, 1, 1),
            3,
            _CLUSTER,
        ),
        _fixed(
            "DeleteAcls",
            deleted([deleted.DeleteAclsFilter(2, "acl-none", 3, None, None, 1, 1)]),
            3,
            _CLUSTER,
        ),
    ]


def _tokens() -> list[Asked]:
    """Return requests for tokens of another user."""
    create, describe = (
        messages.CreateDelegationTokenRequest,
        messages.DescribeDelegationTokenRequest,
    )
    kind, _, name = OTHER_USER.partition(":")
    # A client that may create a token is told that its renewers are wrong.
    creation = create(kind, name, [create.CreatableRenewers("Group", "g")])
    unknown = b"no such token"
    return [
        _fixed("CreateDelegationToken", creation, 3, _OTHER),
        _fixed("RenewDelegationToken", messages.RenewDelegationTokenRequest(unknown), 2, _TOKENS),
        _fixed("ExpireDelegationToken", messages.ExpireDelegationTokenRequest(unknown), 2, _TOKENS),
        _fixed("DescribeDelegationToken", describe(None), 3, _TOKENS),
        _fixed("DescribeDelegationToken of users", describe(None), 3, _OTHER),
        _fixed(
            "DescribeDelegationToken of a user",
            describe([describe.DescribeDelegationTokenOwner(kind, name)]),
            3,
            _TOKENS,
            _OTHER,
        ),
    ]


TABLE: Final = (
    *_data(),
    *_share_partitions(),
    *_topics(),
    *_groups(),
    *_transactions(),
    *_configs(),
    *_cluster(),
    *_tokens(),
)
