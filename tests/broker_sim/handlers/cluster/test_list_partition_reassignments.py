import pytest

from broker_sim.controller import Reassignment
from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.list_partition_reassignments import handle_list_partition_reassignments
from broker_sim.protocol.messages import ListPartitionReassignmentsRequest

Named = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


@pytest.fixture
def moving(broker):
    """Return broker 1 while t-0, t-2 and u-0 move from 1 to 3, and t-1 does not."""
    broker.create("t", [1], [1], [1])
    broker.create("u", [1])
    broker.active.alter_partition_reassignments(
        [Reassignment(topic, number, [3]) for topic, number in (("t", 0), ("t", 2), ("u", 0))]
    )
    return broker


def moves(broker, topics, timeout_ms=1_000):
    request = ListPartitionReassignmentsRequest(timeout_ms, topics)
    response = broker.ask(handle_list_partition_reassignments, request, 0)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return {topic.name: [p.partition_index for p in topic.partitions] for topic in response.topics}


def test_move_lists_all_adding_and_removing_replicas(moving):
    request = ListPartitionReassignmentsRequest(1_000, [Named("u", [0])])
    response = moving.ask(handle_list_partition_reassignments, request, 0)
    ((move,),) = (topic.partitions for topic in response.topics)
    assert move.replicas == [3, 1]
    assert (move.adding_replicas, move.removing_replicas) == ([3], [1])


def test_null_means_all_moves(moving):
    assert moves(moving, None) == {"t": [0, 2], "u": [0]}


def test_only_requested_ongoing_reassignments_are_listed(moving):
    asked = [Named("t", [1, 2, 9]), Named("v", [0])]
    assert moves(moving, asked) == {"t": [2]}


def test_topic_that_is_named_twice_is_listed_once(moving):
    assert moves(moving, [Named("t", [0]), Named("t", [2])]) == {"t": [0, 2]}


def test_empty_request_has_an_empty_response(moving):
    assert moves(moving, []) == {}


def test_timeout_does_not_matter(moving):
    assert moves(moving, None, timeout_ms=0) == {"t": [0, 2], "u": [0]}


def test_cluster_at_rest_has_no_moves(broker):
    broker.create("t", [1])
    assert moves(broker, None) == {}
