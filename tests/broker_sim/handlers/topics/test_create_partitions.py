import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.handlers.topics.create_partitions import handle_create_partitions
from broker_sim.protocol.messages import CreatePartitionsRequest

Topic = CreatePartitionsRequest.CreatePartitionsTopic
Assignment = CreatePartitionsRequest.CreatePartitionsAssignment
VERSIONS = range(4)


@pytest.fixture
def grow(broker):
    broker.create("t", [1, 2], [2, 3])

    def ask(*topics, version=3, timeout_ms=1_000, validate_only=False):
        request = CreatePartitionsRequest(list(topics), timeout_ms, validate_only)
        results = broker.ask(handle_create_partitions, request, version).results
        return [(r.name, r.error_code, r.error_message) for r in results]

    return ask


@pytest.mark.parametrize("version", VERSIONS)
def test_new_partitions_have_as_many_replicas_as_the_old_ones(broker, grow, version):
    assert grow(Topic("t", 4, None), version=version) == [("t", ErrorCode.NONE, None)]
    assert [len(p.replicas) for p in broker.image.topics["t"].partitions] == [2, 2, 2, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_assignments_place_the_new_partitions(broker, grow, version):
    topic = Topic("t", 4, [Assignment([3, 1]), Assignment([1, 2])])
    assert grow(topic, version=version) == [("t", ErrorCode.NONE, None)]
    assert [p.replicas for p in broker.image.topics["t"].partitions[2:]] == [(3, 1), (1, 2)]


@pytest.mark.parametrize(
    ("topic", "error_code"),
    [
        (Topic("t", 2, None), ErrorCode.INVALID_PARTITIONS),
        (Topic("t", 1, None), ErrorCode.INVALID_PARTITIONS),
        (Topic("u", 3, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Topic("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Topic("t", 3, [Assignment([1, 9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Topic("t", 3, [Assignment([1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Topic("t", 20_000, None), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_impossible_number_or_assignment_is_refused_and_nothing_changes(broker, grow, topic, error_code):
    before = broker.image
    assert [(name, code) for name, code, _ in grow(topic)] == [(topic.name, error_code)]
    assert broker.image is before


def test_topic_that_comes_twice_is_refused_once(broker, grow):
    results = grow(Topic("t", 3, None), Topic("t", 4, None))
    assert results == [("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")]
    assert len(broker.image.topics["t"].partitions) == 2


def test_validate_only_changes_nothing(broker, grow):
    before = broker.image
    assert grow(Topic("t", 4, None), validate_only=True) == [("t", ErrorCode.NONE, None)]
    assert broker.image is before


def test_timeout_of_zero_changes_nothing(broker, grow):
    before = broker.image
    results = grow(Topic("t", 4, None), Topic("u", 1, None), timeout_ms=0)
    assert results == [(name, ErrorCode.REQUEST_TIMED_OUT, None) for name in ("t", "u")]
    assert broker.image is before


def test_empty_request_has_an_empty_response(grow):
    assert grow(timeout_ms=0) == []


def test_injected_error_answers_its_topic_and_the_others_grow(broker, grow):
    broker.create("u", [1])
    broker.faults.inject(Fault(api="CreatePartitions", topic="t", error="POLICY_VIOLATION"))
    assert grow(Topic("t", 4, None), Topic("u", 2, None)) == [
        ("u", ErrorCode.NONE, None),
        ("t", ErrorCode.POLICY_VIOLATION, None),
    ]
    assert grow(Topic("t", 4, None)) == [("t", ErrorCode.POLICY_VIOLATION, None)]
    assert [len(broker.image.topics[name].partitions) for name in "tu"] == [2, 2]
