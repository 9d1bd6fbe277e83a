import pytest

from broker_sim.config import Endpoint
from broker_sim.controller.cluster_control_manager import _Heartbeats
from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.describe_quorum import handle_describe_quorum
from broker_sim.protocol.messages import DescribeQuorumRequest

VERSIONS = range(3)
METADATA = "__cluster_metadata"
CONTROLLER = 3000
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def describe(broker, *topics, version=2):
    """Ask for (topic, partition, ...) each."""
    request = DescribeQuorumRequest(
        [
            DescribeQuorumRequest.TopicData(
                topic, [DescribeQuorumRequest.PartitionData(partition) for partition in partitions]
            )
            for topic, *partitions in topics
        ]
    )
    return broker.ask(handle_describe_quorum, request, version)


def described(broker, version=2):
    (topic,) = describe(broker, (METADATA, 0), version=version).topics
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.error_code) == (METADATA, ErrorCode.NONE)
    return partition


@pytest.mark.parametrize("version", VERSIONS)
def test_the_controller_leads_as_the_only_voter(broker, version):
    end = broker.active.image.version
    found = described(broker, version)
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (CONTROLLER, 1, end)
    assert [(v.replica_id, v.log_end_offset) for v in found.current_voters] == [(CONTROLLER, end)]


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_observe_up_to_the_metadata_of_their_last_heartbeat(broker, version):
    broker.pass_time(500)
    known = broker.active.image.version
    broker.create("t", [1])
    found = described(broker, version)
    assert [(o.replica_id, o.log_end_offset) for o in found.observers] == [(1, known), (2, known), (3, known)]
    assert found.high_watermark > known


@pytest.mark.parametrize("version", [1, 2])
def test_timestamps_are_those_of_the_last_heartbeats(broker, version):
    broker.pass_time(500)
    heard_ms = broker.clock.wall_clock_ms()
    broker.clock.advance(7)
    found = described(broker, version)
    (voter,) = found.current_voters
    assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (heard_ms + 7,) * 2
    for observer in found.observers:
        assert (observer.last_fetch_timestamp, observer.last_caught_up_timestamp) == (heard_ms,) * 2


def caught_up(broker):
    return {observer.last_caught_up_timestamp for observer in described(broker).observers}


def test_broker_that_lags_behind_was_caught_up_at_its_last_heartbeat(broker):
    broker.pass_time(500)
    heard_ms = broker.clock.wall_clock_ms()
    broker.create("t", [1])
    assert caught_up(broker) == {heard_ms}


def test_new_broker_was_caught_up_when_it_registered(broker):
    assert caught_up(broker) == {broker.clock.wall_clock_ms()}


def test_broker_that_has_never_had_all_metadata_was_never_caught_up():
    heartbeats = _Heartbeats(registered_at_version=0)
    heartbeats.record_heartbeat(1, end_version=5, now_ms=10)
    heartbeats.record_heartbeat(4, end_version=9, now_ms=20)
    assert heartbeats.caught_up_ms == -1


def test_broker_that_has_all_of_the_last_heartbeat_was_caught_up_then():
    heartbeats = _Heartbeats(registered_at_version=0)
    heartbeats.record_heartbeat(1, end_version=5, now_ms=10)
    heartbeats.record_heartbeat(5, end_version=9, now_ms=20)
    assert heartbeats.caught_up_ms == 10
    heartbeats.record_heartbeat(9, end_version=9, now_ms=30)
    assert heartbeats.caught_up_ms == 30


def test_a_broker_whose_session_has_ended_observes_no_more(broker):
    broker.kill(3)
    assert [o.replica_id for o in described(broker).observers] == [1, 2]


def test_version_2_lists_the_voters_as_nodes(broker):
    response = describe(broker, (METADATA, 0))
    assert [(node.node_id, node.listeners) for node in response.nodes] == [(CONTROLLER, [])]


def test_version_2_has_the_addresses_that_lead_to_the_controller(broker):
    broker.controller_endpoints = (Endpoint("CONTROLLER", "localhost", 9093),)
    (node,) = describe(broker, (METADATA, 0)).nodes
    assert [(each.name, each.host, each.port) for each in node.listeners] == [("CONTROLLER", "localhost", 9093)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("topics", [[(METADATA, 1)], [("other", 0)], [(METADATA, 0, 1)], [(METADATA, 0), ("other", 0)]])
def test_any_other_request_is_refused_for_every_partition(broker, version, topics):
    response = describe(broker, *topics, version=version)
    assert response.error_code == ErrorCode.NONE
    assert response.nodes == []
    text = "This server does not host this topic-partition." if version == 2 else ""
    assert [
        (topic.topic_name, [(p.partition_index, p.error_code) for p in topic.partitions]) for topic in response.topics
    ] == [(name, [(p, UNKNOWN) for p in partitions]) for name, *partitions in topics]
    assert {p.error_message for t in response.topics for p in t.partitions} == {text}
    assert {p.leader_id for t in response.topics for p in t.partitions} == {0}


def test_a_request_without_partitions_is_answered_as_it_is(broker):
    assert describe(broker).topics == []
    assert [(t.topic_name, t.partitions) for t in describe(broker, (METADATA,)).topics] == [(METADATA, [])]
