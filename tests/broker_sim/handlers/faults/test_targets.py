"""The partitions or topics that a request of each API names."""

import pytest

from broker_sim.handlers import RequestContext
from broker_sim.handlers.faults.targets import targets_of
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey


@pytest.fixture
def targets(broker):
    def ask(request, version):
        context = RequestContext(broker, None, ApiKey(request.API_KEY), version, "test")
        return targets_of(request, context)

    return ask


@pytest.fixture
def topic_id(broker):
    return broker.create("t", [1], [1])


def test_targets_of_produce_by_topic_name_or_id(targets, topic_id):
    topic = messages.ProduceRequest.TopicProduceData
    partitions = [messages.ProduceRequest.PartitionProduceData(index) for index in (1, 0)]
    by_name = messages.ProduceRequest(topic_data=[topic(name="u", partition_data=partitions)])
    by_id = messages.ProduceRequest(topic_data=[topic(topic_id=topic_id, partition_data=partitions)])
    unknown = messages.ProduceRequest(topic_data=[topic(topic_id=b"x" * 16, partition_data=partitions)])
    assert targets(by_name, 9) == [("u", 1), ("u", 0)]
    assert targets(by_id, 13) == [("t", 1), ("t", 0)]
    assert targets(unknown, 13) == [("", 1), ("", 0)]


def test_targets_of_fetch_by_topic_name_or_id(targets, topic_id):
    topic = messages.FetchRequest.FetchTopic
    partitions = [messages.FetchRequest.FetchPartition(1)]
    assert targets(messages.FetchRequest(topics=[topic("u", partitions=partitions)]), 12) == [("u", 1)]
    by_id = messages.FetchRequest(topics=[topic(topic_id=topic_id, partitions=partitions)])
    assert targets(by_id, 13) == [("t", 1)]


def test_targets_of_other_apis_with_partitions(targets):
    list_offsets = messages.ListOffsetsRequest
    delete_records = messages.DeleteRecordsRequest
    epochs = messages.OffsetForLeaderEpochRequest
    for request in (
        list_offsets(topics=[list_offsets.ListOffsetsTopic("t", [list_offsets.ListOffsetsPartition(2)])]),
        delete_records(topics=[delete_records.DeleteRecordsTopic("t", [delete_records.DeleteRecordsPartition(2)])]),
        epochs(topics=[epochs.OffsetForLeaderTopic("t", [epochs.OffsetForLeaderPartition(2)])]),
    ):
        assert targets(request, 2) == [("t", 2)]


def test_targets_of_metadata_are_the_listed_or_all_topics(targets, topic_id):
    topic = messages.MetadataRequest.MetadataRequestTopic
    named = messages.MetadataRequest(topics=[topic(name="u"), topic(topic_id, None)])
    assert targets(named, 12) == [("u", -1), ("t", -1)]
    assert targets(messages.MetadataRequest(topics=None), 12) == [("t", -1)]
    assert targets(messages.MetadataRequest(topics=[]), 0) == [("t", -1)]
    assert targets(messages.MetadataRequest(topics=[]), 1) == []


def test_targets_of_admin_requests_are_topics(targets, topic_id):
    create, extend = messages.CreateTopicsRequest, messages.CreatePartitionsRequest
    delete = messages.DeleteTopicsRequest
    assert targets(create(topics=[create.CreatableTopic("u")]), 7) == [("u", -1)]
    assert targets(extend(topics=[extend.CreatePartitionsTopic("u", 3)]), 3) == [("u", -1)]
    assert targets(delete(topic_names=["u"]), 5) == [("u", -1)]
    assert targets(delete(topics=[delete.DeleteTopicState(None, topic_id)]), 6) == [("t", -1)]


def test_apis_with_one_error_for_the_request_have_no_targets(targets):
    assert targets(messages.DescribeClusterRequest(), 0) == []


def test_targets_of_txn_offset_commit_and_describe_producers(targets):
    commit = messages.TxnOffsetCommitRequest
    offsets = [commit.TxnOffsetCommitRequestPartition(index) for index in (1, 0)]
    topic = commit.TxnOffsetCommitRequestTopic("t", partitions=offsets)
    assert targets(commit(topics=[topic]), 3) == [("t", 1), ("t", 0)]
    describe = messages.DescribeProducersRequest
    assert targets(describe([describe.TopicRequest("t", [1, 0])]), 0) == [("t", 1), ("t", 0)]
