import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.topics.describe_topic_partitions import handle_describe_topic_partitions
from broker_sim.protocol.messages import DescribeTopicPartitionsRequest

Named = DescribeTopicPartitionsRequest.TopicRequest
Cursor = DescribeTopicPartitionsRequest.Cursor


@pytest.fixture
def three_topics(broker):
    """Return broker 1 of a cluster with a (2 partitions), b (3) and c (1)."""
    broker.create("c", [1])
    broker.create("a", [1, 2], [2, 3])
    broker.create("b", [1], [2], [3])
    return broker


def describe(broker, *names, limit=2_000, cursor=None):
    topics = [Named(name) for name in names]
    request = DescribeTopicPartitionsRequest(topics, limit, cursor and Cursor(*cursor))
    return broker.ask(handle_describe_topic_partitions, request, 0)


def numbers(response):
    """Return (topic, numbers of its partitions) in order, and where to go on."""
    cursor = response.next_cursor
    return (
        [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics],
        cursor and (cursor.topic_name, cursor.partition_index),
    )


def test_empty_list_means_all_topics_sorted_by_name(three_topics):
    assert numbers(describe(three_topics)) == ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None)


def test_topic_carries_its_id_and_its_authorized_operations(three_topics):
    (topic,) = describe(three_topics, "a").topics
    assert topic.topic_id == three_topics.image.topics["a"].topic_id
    assert (topic.error_code, topic.is_internal) == (ErrorCode.NONE, False)
    assert topic.topic_authorized_operations == 3576  # what Kafka 4.3.1 says


def test_internal_topic_is_marked_as_internal(broker):
    broker.create("__consumer_offsets", [1])
    (topic,) = describe(broker).topics
    assert topic.is_internal


def test_unknown_and_illegal_requested_names_have_errors(three_topics):
    response = describe(three_topics, "c", "b/d", "aa", "c")
    assert [(t.name, t.error_code, t.partitions != []) for t in response.topics] == [
        ("aa", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("b/d", ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        ("c", ErrorCode.NONE, True),
    ]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, ([("a", [0])], ("a", 1))),
        (1, ([("a", [0])], ("a", 1))),
        (2, ([("a", [0, 1])], ("b", 0))),
        (3, ([("a", [0, 1]), ("b", [0])], ("b", 1))),
        (5, ([("a", [0, 1]), ("b", [0, 1, 2])], ("c", 0))),
        (6, ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None)),
    ],
)
def test_limit_ends_the_response_and_sets_the_cursor(three_topics, limit, expected):
    assert numbers(describe(three_topics, limit=limit)) == expected


def test_brokers_own_limit_counts_when_it_is_lower(make_broker):
    broker = make_broker({"max.request.partition.size.limit": "2"})
    broker.create("t", [1], [1], [1])
    assert numbers(describe(broker, limit=2_000)) == ([("t", [0, 1])], ("t", 2))


@pytest.mark.parametrize("limit", range(1, 8))
@pytest.mark.parametrize("names", [(), ("a", "b", "c"), ("b", "zz")])
def test_following_the_cursor_finds_each_partition_once(three_topics, names, limit):
    found, cursor = [], None
    for _ in range(10):
        response = describe(three_topics, *names, limit=limit, cursor=cursor)
        topics, cursor = numbers(response)
        assert sum(len(partitions) for _, partitions in topics) <= limit
        found += [(name, number) for name, partitions in topics for number in partitions]
        if cursor is None:
            break
    wanted = names or ("a", "b", "c")
    counts = {"a": 2, "b": 3, "c": 1}
    assert found == [(n, number) for n in wanted for number in range(counts.get(n, 0))]


def test_cursor_behind_the_last_partition_leaves_the_topic_empty(three_topics):
    assert numbers(describe(three_topics, "b", cursor=("b", 7))) == ([("b", [])], None)


def test_cursor_on_a_deleted_topic_continues_with_the_next_topic(three_topics):
    assert numbers(describe(three_topics, cursor=("ab", 5))) == ([("b", [0, 1, 2]), ("c", [0])], None)


@pytest.mark.parametrize("cursor", [("a", -1), ("c", 0)])
def test_invalid_cursor_refuses_the_topics(three_topics, cursor):
    response = describe(three_topics, "a", "b", cursor=cursor)
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
    assert response.next_cursor is None


def test_partition_has_leader_replicas_isr_and_offline_replicas(three_topics):
    three_topics.kill(2)
    (topic,) = describe(three_topics, "a").topics
    first, second = topic.partitions
    assert (first.leader_id, first.replica_nodes, first.isr_nodes) == (1, [1, 2], [1])
    assert (second.leader_id, second.leader_epoch, second.isr_nodes) == (3, 1, [3])
    assert (first.offline_replicas, second.offline_replicas) == ([2], [2])
    assert first.eligible_leader_replicas == []


def test_eligible_leader_replicas_are_listed(broker):
    broker.create("t", [1, 2, 3], min_insync_replicas="2")
    broker.kill(3)
    broker.kill(2)
    ((partition,),) = (topic.partitions for topic in describe(broker, "t").topics)
    assert (partition.leader_id, partition.isr_nodes) == (1, [1])
    assert partition.eligible_leader_replicas == [2]
    assert partition.offline_replicas == [2, 3]


def test_last_known_leader_is_listed_when_no_replica_can_lead(broker):
    broker.create("t", [3])
    broker.kill(3)
    ((partition,),) = (topic.partitions for topic in describe(broker, "t").topics)
    state = broker.image.topics["t"].partitions[0]
    assert (partition.leader_id, partition.error_code) == (-1, ErrorCode.NONE)
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == (
        list(state.elr),
        list(state.last_known_elr),
    )
    assert partition.eligible_leader_replicas == [3]


def test_empty_name_without_a_cursor_fails_the_whole_request_as_in_kafka(three_topics):
    topics = describe(three_topics, "b", "").topics
    assert [(t.name, t.error_code) for t in topics] == [
        ("b", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("", ErrorCode.UNKNOWN_SERVER_ERROR),
    ]
    assert {t.topic_authorized_operations for t in topics} == {-(2**31)}
    response = describe(three_topics, "b", "", cursor=("b", 0))
    assert numbers(response) == ([("b", [0, 1, 2])], None)
