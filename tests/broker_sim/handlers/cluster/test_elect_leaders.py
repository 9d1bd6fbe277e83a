import pytest

from broker_sim.controller import ElectionType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.elect_leaders import handle_elect_leaders
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.messages import ElectLeadersRequest

Partitions = ElectLeadersRequest.TopicPartitions
VERSIONS = range(3)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.fixture
def moved(broker):
    """Return broker 1, with partitions 0 and 1 of topic t led by 1 although 2 is preferred."""
    broker.create("t", [2, 1], [2, 1], [1, 2])
    broker.kill(2)
    broker.start(2)
    for number in range(3):
        broker.fill_isr("t", number)
    assert [p.leader for p in broker.image.topics["t"].partitions] == [1, 1, 1]
    return broker


@pytest.fixture
def leaderless(broker):
    """Return broker 1, with t-0 without a leader while a replica that lacks records is back."""
    broker.create("t", [2, 3])
    broker.kill(2)
    broker.kill(3)
    broker.start(2)
    assert broker.partition("t").leader == -1
    return broker


def elect(broker, partitions, *, election=PREFERRED, version=2, timeout_ms=1_000):
    topics = partitions and [Partitions(*topic) for topic in partitions]
    request = ElectLeadersRequest(election, topics, timeout_ms)
    return broker.send(handle_elect_leaders, request, version)


def results_of(response):
    return {
        topic.topic: {p.partition_id: p.error_code for p in topic.partition_result}
        for topic in response.replica_election_results
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_preferred_replica_leads_when_the_response_comes(moved, version):
    (response,) = elect(moved, [("t", [0])], version=version)
    assert results_of(response) == {"t": {0: ErrorCode.NONE}}
    assert moved.image.partition(TopicPartition("t", 0)).leader == 2


def test_response_waits_until_this_broker_knows_the_leaders(moved):
    moved.hold_metadata()
    responses = elect(moved, [("t", [0, 1])])
    assert moved.partition("t").leader == 2
    assert responses == []
    parked = moved.replica_manager.purgatories.elect_leader.parked()
    assert [set(operation.keys) for operation in parked] == [{TopicPartition("t", 0), TopicPartition("t", 1)}]
    moved.release_metadata()
    assert [results_of(response) for response in responses] == [{"t": {0: 0, 1: 0}}]
    assert moved.replica_manager.purgatories.elect_leader.num_delayed() == 0


@pytest.mark.parametrize("waited_ms", [999, 1_000, 1_001])
def test_response_is_the_same_when_the_metadata_does_not_come_in_time(moved, waited_ms):
    moved.hold_metadata()
    responses = elect(moved, [("t", [0])], timeout_ms=1_000)
    moved.pass_time(waited_ms)
    assert len(responses) == (waited_ms >= 1_000)
    moved.release_metadata()
    assert [results_of(response) for response in responses] == [{"t": {0: ErrorCode.NONE}}]


def test_partition_led_by_its_preferred_replica_needs_no_election_and_no_wait(moved):
    moved.hold_metadata()
    (response,) = elect(moved, [("t", [2])])
    assert results_of(response) == {"t": {2: ErrorCode.ELECTION_NOT_NEEDED}}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_partition_fails_alone(moved, version):
    (response,) = elect(moved, [("t", [0, 2, 9]), ("u", [0])], version=version)
    assert results_of(response) == {
        "t": {0: ErrorCode.NONE, 2: ErrorCode.ELECTION_NOT_NEEDED, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        "u": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    }
    assert response.error_code == ErrorCode.NONE


def test_all_partitions_means_every_topic_but_only_partitions_in_need(moved):
    moved.create("fine", [1])
    (response,) = elect(moved, None)
    assert results_of(response) == {"t": {0: ErrorCode.NONE, 1: ErrorCode.NONE}, "fine": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_preferred_replica_that_is_down_is_not_available(broker, version):
    broker.create("t", [2, 1])
    broker.kill(2)
    (response,) = elect(broker, [("t", [0])], version=version)
    assert results_of(response) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}


@pytest.mark.parametrize("version", [1, 2])
def test_unclean_election_elects_a_replica_outside_the_isr(leaderless, version):
    (response,) = elect(leaderless, [("t", [0])], election=UNCLEAN, version=version)
    assert results_of(response) == {"t": {0: ErrorCode.NONE}}
    assert leaderless.image.partition(TopicPartition("t", 0)).leader == 2


def test_unclean_election_needs_a_living_replica(broker):
    broker.create("t", [3])
    broker.kill(3)
    (response,) = elect(broker, [("t", [0])], election=UNCLEAN)
    assert results_of(response) == {"t": {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}}


@pytest.mark.parametrize("version", [1, 2])
def test_unknown_election_type_refuses_the_whole_request(moved, version):
    (response,) = elect(moved, [("t", [0])], election=5, version=version)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    (topic,) = response.replica_election_results
    assert [p.error_message for p in topic.partition_result] == ["Unknown election type 5"]


@pytest.mark.parametrize("version", VERSIONS)
def test_timeout_of_zero_elects_no_leader(moved, version):
    before = moved.image
    (response,) = elect(moved, [("t", [0])], version=version, timeout_ms=0)
    assert results_of(response) == {"t": {0: ErrorCode.REQUEST_TIMED_OUT}}
    assert response.error_code == (ErrorCode.REQUEST_TIMED_OUT if version else ErrorCode.NONE)
    assert moved.image is before


def test_empty_request_has_an_empty_response(moved):
    (response,) = elect(moved, [], timeout_ms=0)
    assert (response.error_code, results_of(response)) == (ErrorCode.NONE, {})
