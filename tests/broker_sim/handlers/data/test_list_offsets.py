import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.data.list_offsets import handle_list_offsets
from broker_sim.handlers.faults import Fault
from broker_sim.protocol.messages import ListOffsetsRequest


def ask(broker, *questions, version=11, isolation_level=0):
    """Ask about (topic, partition, timestamp)."""
    topics = [
        ListOffsetsRequest.ListOffsetsTopic(name, [ListOffsetsRequest.ListOffsetsPartition(partition, -1, timestamp)])
        for name, partition, timestamp in questions
    ]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
    response = broker.ask(handle_list_offsets, request, version)
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_can_carry_the_response(broker, version):
    assert ask(broker, ("t", 0, -1), version=version) == {("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_partition_that_comes_twice_fails_alone(broker):
    assert ask(broker, ("t", 0, -1), ("t", 0, -2), ("t", 1, -1)) == {
        ("t", 0): ErrorCode.INVALID_REQUEST,
        ("t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }


@pytest.mark.parametrize(("timestamp", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_timestamp_is_unsupported_before_its_first_version(broker, timestamp, first_version):
    for version in range(1, 12):
        (error_code,) = ask(broker, ("t", 0, timestamp), version=version).values()
        unsupported = error_code == ErrorCode.UNSUPPORTED_VERSION
        assert unsupported == (version < first_version)


def test_unknown_isolation_level_fails(broker):
    (error_code,) = ask(broker, ("t", 0, -1), isolation_level=2).values()
    assert error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_injected_error_answers_its_partition_only(broker):
    broker.faults.inject(Fault(api="ListOffsets", topic="t", partition=1, error="OFFSET_NOT_AVAILABLE"))
    assert ask(broker, ("t", 0, -1), ("t", 1, -1)) == {
        ("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ("t", 1): ErrorCode.OFFSET_NOT_AVAILABLE,
    }
