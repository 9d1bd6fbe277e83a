"""What the handler of DeleteRecords refuses itself; how long it waits is `DelayedDeleteRecords`'s."""

import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.messages import DeleteRecordsRequest


class Setup:
    """The only broker, which leads two partitions of a record each, and an internal topic."""

    def __init__(self, make_frame_client):
        self.cluster = VirtualCluster(1)
        self.cluster.create_topic("t", 2, 1)
        self.cluster.create_topic("__consumer_offsets", 1, 1)
        self.broker = self.cluster.nodes.brokers[1]
        self.client = make_frame_client(self.broker.dispatcher.handle_frame)
        self.client.ask(produce_request(("t", 0), ("t", 1), acks=1), 9)

    def delete(self, *keys, version=2):
        """Delete everything in the partitions; return their errors and low watermarks."""
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(name, [DeleteRecordsRequest.DeleteRecordsPartition(number, -1)])
                for name, number in keys
            ],
            timeout_ms=1_000,
        )
        response = self.client.ask(request, version)
        return {
            (topic.name, partition.partition_index): (partition.error_code, partition.low_watermark)
            for topic in response.topics
            for partition in topic.partitions
        }

    def start_offset(self, *key):
        partition = self.broker.replica_manager.partitions[TopicPartition(*key)]
        return partition.log.log_start_offset


@pytest.fixture
def setup(make_frame_client):
    return Setup(make_frame_client)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_are_deleted_up_to_the_high_watermark(setup, version):
    assert setup.delete(("t", 0), version=version) == {("t", 0): (ErrorCode.NONE, 1)}
    assert (setup.start_offset("t", 0), setup.start_offset("t", 1)) == (1, 0)


def test_unknown_partitions_and_internal_topics_are_refused_and_the_others_served(setup):
    assert setup.delete(("t", 0), ("t", 9), ("u", 0), ("__consumer_offsets", 0)) == {
        ("t", 0): (ErrorCode.NONE, 1),
        ("t", 9): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("u", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("__consumer_offsets", 0): (ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
    }


def test_injected_error_answers_its_partition_and_deletes_nothing_there(setup):
    setup.cluster.nodes.faults.inject(Fault(api="DeleteRecords", topic="t", partition=0, error="POLICY_VIOLATION"))
    assert setup.delete(("t", 0), ("t", 1)) == {
        ("t", 0): (ErrorCode.POLICY_VIOLATION, -1),
        ("t", 1): (ErrorCode.NONE, 1),
    }
    assert (setup.start_offset("t", 0), setup.start_offset("t", 1)) == (0, 1)
