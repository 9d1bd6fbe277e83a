"""The requests of the table: each API, once for each kind of resource whose rights it needs.

Each can be repeated: an allowed request changes nothing, or fails for another reason.
"""

from __future__ import annotations

from typing import Final

from broker_sim.cluster.requests import fetch_request, produce_request
from broker_sim.metadata.acl import ResourceType
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch
from integration.acls.names import (
    CLUSTER_RESOURCE,
    GROUP,
    GROUP_RESOURCE,
    ID_RESOURCE,
    NEW_RESOURCE,
    NEW_TOPIC,
    OTHER_RESOURCE,
    OTHER_USER,
    TOKENS_RESOURCE,
    TOPIC,
    TOPIC_RESOURCE,
    TRANSACTIONAL_ID,
)
from integration.acls.share_rows import share_rows
from integration.acls.situation import Asked, by_id, fixed
from integration.acls.streams_rows import streams_rows

__all__ = ["TABLE"]


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
        fixed("Produce", produce_request((TOPIC, 0)), 9, TOPIC_RESOURCE),
        by_id("Produce by id", _produce_by_id, 13, TOPIC_RESOURCE),
        fixed("Produce to an unknown topic", produce_request((NEW_TOPIC, 0)), 9, NEW_RESOURCE),
        fixed("Produce in a transaction", _transactional_produce(), 9, ID_RESOURCE, TOPIC_RESOURCE),
        fixed("Fetch", fetch_request((TOPIC, 0), max_wait_ms=0), 12, TOPIC_RESOURCE),
        by_id("Fetch by id", _fetch_by_id, 13, TOPIC_RESOURCE),
        fixed(
            "Fetch of an unknown topic",
            fetch_request((NEW_TOPIC, 0), max_wait_ms=0),
            12,
            NEW_RESOURCE,
        ),
        fixed(
            "Fetch of a follower",
            fetch_request((TOPIC, 9), max_wait_ms=0, replica_id=1),
            12,
            CLUSTER_RESOURCE,
        ),
        fixed(
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
            TOPIC_RESOURCE,
        ),
        fixed(
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
            TOPIC_RESOURCE,
        ),
        fixed(
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
            TOPIC_RESOURCE,
        ),
        fixed(
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
            CLUSTER_RESOURCE,
        ),
    ]


def _topics() -> list[Asked]:
    metadata = messages.MetadataRequest
    topic = metadata.MetadataRequestTopic
    create, more = messages.CreateTopicsRequest, messages.CreatePartitionsRequest
    described = messages.DescribeTopicPartitionsRequest
    creation = create([create.CreatableTopic(NEW_TOPIC, 1, 1)], 1_000, validate_only=True)
    asks = {"include_topic_authorized_operations": True}
    return [
        fixed("Metadata", metadata([topic(name=TOPIC)], False, **asks), 9, TOPIC_RESOURCE),
        fixed("Metadata of all topics", metadata(None, False, **asks), 12, TOPIC_RESOURCE),
        by_id(
            "Metadata by id",
            lambda topic_id: metadata([topic(topic_id, None)], False, **asks),
            12,
            TOPIC_RESOURCE,
        ),
        fixed(
            "Metadata of an unknown topic",
            metadata([topic(name=NEW_TOPIC)], False),
            9,
            NEW_RESOURCE,
        ),
        fixed(
            "Metadata of the cluster",
            metadata([], False, include_cluster_authorized_operations=True),
            8,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "DescribeTopicPartitions", described([described.TopicRequest(TOPIC)]), 0, TOPIC_RESOURCE
        ),
        fixed("DescribeTopicPartitions of all topics", described([]), 0, TOPIC_RESOURCE),
        fixed("CreateTopics", creation, 7, NEW_RESOURCE),
        fixed("CreateTopics in the cluster", creation, 7, CLUSTER_RESOURCE),
        fixed(
            "CreatePartitions",
            more([more.CreatePartitionsTopic(TOPIC, 2)], 1_000, validate_only=True),
            3,
            TOPIC_RESOURCE,
        ),
        fixed(
            "DeleteTopics",
            messages.DeleteTopicsRequest(
                [messages.DeleteTopicsRequest.DeleteTopicState(NEW_TOPIC)], timeout_ms=1_000
            ),
            6,
            NEW_RESOURCE,
        ),
        fixed(
            "DeleteTopics in the cluster",
            messages.DeleteTopicsRequest(
                [messages.DeleteTopicsRequest.DeleteTopicState(NEW_TOPIC)], timeout_ms=1_000
            ),
            6,
            CLUSTER_RESOURCE,
        ),
    ]


def _groups() -> list[Asked]:
    join, sync = messages.JoinGroupRequest, messages.SyncGroupRequest
    commit, delete = messages.OffsetCommitRequest, messages.OffsetDeleteRequest
    fetch, txn = messages.OffsetFetchRequest, messages.TxnOffsetCommitRequest
    member, epoch = "nobody", 3
    find = messages.FindCoordinatorRequest
    return [
        fixed(
            "FindCoordinator of a group",
            find(key_type=0, coordinator_keys=[GROUP]),
            4,
            GROUP_RESOURCE,
        ),
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
        fixed(
            "SyncGroup",
            sync(GROUP, 1, member, protocol_type="consumer", protocol_name="range"),
            5,
            GROUP_RESOURCE,
        ),
        fixed("Heartbeat", messages.HeartbeatRequest(GROUP, 1, member), 4, GROUP_RESOURCE),
        fixed(
            "LeaveGroup",
            messages.LeaveGroupRequest(
                GROUP, members=[messages.LeaveGroupRequest.MemberIdentity(member)]
            ),
            5,
            GROUP_RESOURCE,
        ),
        fixed(
            "ConsumerGroupHeartbeat",
            messages.ConsumerGroupHeartbeatRequest(
                GROUP, member, epoch, subscribed_topic_names=[TOPIC]
            ),
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
                topics=[
                    commit.OffsetCommitRequestTopic(
                        TOPIC, partitions=[commit.OffsetCommitRequestPartition(0, 5)]
                    )
                ],
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
            delete(
                GROUP,
                [delete.OffsetDeleteRequestTopic(TOPIC, [delete.OffsetDeleteRequestPartition(7)])],
            ),
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
                topics=[
                    txn.TxnOffsetCommitRequestTopic(
                        TOPIC, [txn.TxnOffsetCommitRequestPartition(0, 5)]
                    )
                ],
            ),
            3,
            ID_RESOURCE,
            GROUP_RESOURCE,
            TOPIC_RESOURCE,
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
        fixed("InitProducerId", init(TRANSACTIONAL_ID, 60_000, -1, -1), 4, ID_RESOURCE),
        fixed("InitProducerId of an idempotent producer", init(None, 60_000), 4, CLUSTER_RESOURCE),
        fixed("InitProducerId of who may write", init(None, 60_000), 4, TOPIC_RESOURCE),
        fixed(
            "AddPartitionsToTxn",
            add(
                v3_and_below_transactional_id=TRANSACTIONAL_ID,
                v3_and_below_producer_id=4_000_000,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[topic],
            ),
            3,
            ID_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed("AddPartitionsToTxn as a broker", add(transactions=batch), 5, CLUSTER_RESOURCE),
        fixed(
            "AddOffsetsToTxn",
            messages.AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 4_000_000, 0, GROUP),
            3,
            ID_RESOURCE,
            GROUP_RESOURCE,
        ),
        fixed(
            "EndTxn", messages.EndTxnRequest(TRANSACTIONAL_ID, 4_000_000, 0, True), 3, ID_RESOURCE
        ),
        fixed("WriteTxnMarkers", markers([marker]), 1, CLUSTER_RESOURCE),
        fixed(
            "DescribeTransactions",
            messages.DescribeTransactionsRequest([TRANSACTIONAL_ID]),
            0,
            ID_RESOURCE,
        ),
        fixed("ListTransactions", messages.ListTransactionsRequest(), 0, ID_RESOURCE),
        fixed(
            "DescribeProducers",
            producers([producers.TopicRequest(TOPIC, [0])]),
            0,
            TOPIC_RESOURCE,
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
        fixed("DescribeLogDirs", messages.DescribeLogDirsRequest([]), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of a topic", describe(2, TOPIC), 4, TOPIC_RESOURCE),
        fixed("DescribeConfigs of a broker", describe(4, "1"), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of loggers", describe(8, "1"), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of client metrics", describe(16, "m"), 4, CLUSTER_RESOURCE),
        fixed("DescribeConfigs of a group", describe(32, GROUP), 4, GROUP_RESOURCE),
        fixed("AlterConfigs of a topic", replace(2, TOPIC), 2, TOPIC_RESOURCE),
        fixed("AlterConfigs of a broker", replace(4, "1"), 2, CLUSTER_RESOURCE),
        fixed("IncrementalAlterConfigs of a topic", change(2, TOPIC), 1, TOPIC_RESOURCE),
        fixed("IncrementalAlterConfigs of a broker", change(4, "1"), 1, CLUSTER_RESOURCE),
        fixed("IncrementalAlterConfigs of loggers", change(8, "1"), 1, CLUSTER_RESOURCE),
        fixed("IncrementalAlterConfigs of a group", change(32, GROUP), 1, GROUP_RESOURCE),
        fixed("ListConfigResources", messages.ListConfigResourcesRequest([4]), 1, CLUSTER_RESOURCE),
    ]


def _cluster() -> list[Asked]:
    elect, moves = messages.ElectLeadersRequest, messages.AlterPartitionReassignmentsRequest
    listed, quorum = messages.ListPartitionReassignmentsRequest, messages.DescribeQuorumRequest
    scram, acls = messages.AlterUserScramCredentialsRequest, messages.CreateAclsRequest
    deleted, quotas = messages.DeleteAclsRequest, messages.AlterClientQuotasRequest
    quota = quotas.EntryData([quotas.EntityData("user", "nobody")])
    move = moves.ReassignableTopic(TOPIC, [moves.ReassignablePartition(0, None)])
    return [
        fixed("ApiVersions", messages.ApiVersionsRequest("table", "1"), 3, CLUSTER_RESOURCE),
        fixed(
            "DescribeCluster",
            messages.DescribeClusterRequest(include_cluster_authorized_operations=True),
            1,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "DescribeQuorum",
            quorum([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])]),
            1,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "ElectLeaders",
            elect(0, [elect.TopicPartitions(TOPIC, [0])], 1_000),
            2,
            CLUSTER_RESOURCE,
        ),
        fixed("AlterPartitionReassignments", moves(1_000, True, [move]), 1, CLUSTER_RESOURCE),
        fixed(
            "ListPartitionReassignments",
            listed(1_000, [listed.ListPartitionReassignmentsTopics(TOPIC, [0])]),
            0,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "UpdateFeatures",
            messages.UpdateFeaturesRequest(
                1_000,
                [messages.UpdateFeaturesRequest.FeatureUpdateKey("no.such.feature", 1)],
                validate_only=True,
            ),
            1,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "DescribeUserScramCredentials",
            messages.DescribeUserScramCredentialsRequest([]),
            0,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "AlterUserScramCredentials",
            scram([scram.ScramCredentialDeletion("nobody", 1)]),
            0,
            CLUSTER_RESOURCE,
        ),
        fixed("DescribeClientQuotas", messages.DescribeClientQuotasRequest(), 1, CLUSTER_RESOURCE),
        fixed("AlterClientQuotas", quotas([quota], validate_only=True), 1, CLUSTER_RESOURCE),
        fixed(
            "CreateAcls",
            acls([acls.AclCreation(2, "", 3, "User:nobody", "*", 3, 3)]),
            3,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "DescribeAcls",
            messages.DescribeAclsRequest(2, "acl-none", 3, None, None, 1, 1),
            3,
            CLUSTER_RESOURCE,
        ),
        fixed(
            "DeleteAcls",
            deleted([deleted.DeleteAclsFilter(2, "acl-none", 3, None, None, 1, 1)]),
            3,
            CLUSTER_RESOURCE,
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
        fixed("CreateDelegationToken", creation, 3, OTHER_RESOURCE),
        fixed(
            "RenewDelegationToken",
            messages.RenewDelegationTokenRequest(unknown),
            2,
            TOKENS_RESOURCE,
        ),
        fixed(
            "ExpireDelegationToken",
            messages.ExpireDelegationTokenRequest(unknown),
            2,
            TOKENS_RESOURCE,
        ),
        fixed("DescribeDelegationToken", describe(None), 3, TOKENS_RESOURCE),
        fixed("DescribeDelegationToken of users", describe(None), 3, OTHER_RESOURCE),
        fixed(
            "DescribeDelegationToken of a user",
            describe([describe.DescribeDelegationTokenOwner(kind, name)]),
            3,
            TOKENS_RESOURCE,
            OTHER_RESOURCE,
        ),
    ]


TABLE: Final = (
    *_data(),
    *share_rows(),
    *streams_rows(),
    *_topics(),
    *_groups(),
    *_transactions(),
    *_configs(),
    *_cluster(),
    *_tokens(),
)
