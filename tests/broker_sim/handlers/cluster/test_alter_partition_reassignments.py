import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.alter_partition_reassignments import handle_alter_partition_reassignments
from broker_sim.protocol.messages import AlterPartitionReassignmentsRequest

Topic = AlterPartitionReassignmentsRequest.ReassignableTopic
Partition = AlterPartitionReassignmentsRequest.ReassignablePartition
VERSIONS = range(2)


@pytest.fixture
def reassign(broker):
    broker.create("t", [1, 2], [1, 2])

    def ask(*topics, version=1, timeout_ms=1_000, allow=True):
        request = AlterPartitionReassignmentsRequest(timeout_ms, allow, list(topics))
        return broker.ask(handle_alter_partition_reassignments, request, version)

    return ask


def results_of(response):
    return [(topic.name, [(p.partition_index, p.error_code) for p in topic.partitions]) for topic in response.responses]


@pytest.mark.parametrize("version", VERSIONS)
def test_wanted_replicas_are_added_and_the_others_removed_later(broker, reassign, version):
    response = reassign(Topic("t", [Partition(0, [3, 1])]), version=version)
    assert results_of(response) == [("t", [(0, ErrorCode.NONE)])]
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    state = broker.image.topics["t"].partitions[0]
    assert (state.adding_replicas, state.removing_replicas) == ((3,), (2,))


@pytest.mark.parametrize("version", VERSIONS)
def test_null_replicas_cancel_the_move(broker, reassign, version):
    reassign(Topic("t", [Partition(0, [3, 1])]), version=version)
    response = reassign(Topic("t", [Partition(0, None)]), version=version)
    assert results_of(response) == [("t", [(0, ErrorCode.NONE)])]
    assert broker.image.topics["t"].partitions[0].replicas == (1, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_partition_fails_alone_and_results_follow_the_request(broker, reassign, version):
    response = reassign(
        Topic("u", [Partition(0, [1])]),
        Topic("t", [Partition(9, [1]), Partition(1, None), Partition(0, [2, 1])]),
        Topic("t", [Partition(1, [1, 9])]),
        version=version,
    )
    assert results_of(response) == [
        ("u", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        (
            "t",
            [
                (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                (1, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
                (0, ErrorCode.NONE),
            ],
        ),
        ("t", [(1, ErrorCode.INVALID_REPLICA_ASSIGNMENT)]),
    ]
    assert broker.image.topics["t"].partitions[0].replicas == (2, 1)


@pytest.mark.parametrize("allow", [True, False])
def test_change_of_the_replication_factor_can_be_forbidden(reassign, allow):
    response = reassign(Topic("t", [Partition(0, [1, 2, 3])]), allow=allow)
    expected = ErrorCode.NONE if allow else ErrorCode.INVALID_REPLICATION_FACTOR
    assert results_of(response) == [("t", [(0, expected)])]
    assert response.allow_replication_factor_change is allow


@pytest.mark.parametrize("version", VERSIONS)
def test_timeout_of_zero_moves_nothing(broker, reassign, version):
    before = broker.image
    response = reassign(Topic("t", [Partition(0, [3, 1])]), version=version, timeout_ms=0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert results_of(response) == [("t", [(0, ErrorCode.REQUEST_TIMED_OUT)])]
    assert broker.image is before
