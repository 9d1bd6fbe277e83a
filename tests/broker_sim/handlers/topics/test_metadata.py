import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.handlers.topics.metadata import handle_metadata
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol.messages import MetadataRequest

UNKNOWN_ID = bytes(range(16))


def ask(broker, *topics, version=13, **fields):
    wanted = [MetadataRequest.MetadataRequestTopic(topic_id, name) for topic_id, name in topics]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=version < 4, **fields)
    return broker.ask(handle_metadata, request, version)


def named(response):
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", range(1, 14))
def test_topic_that_comes_twice_is_described_once(broker, version):
    broker.create("t", (1, 2))
    response = ask(broker, (NO_TOPIC_ID, "t"), (NO_TOPIC_ID, "t"), version=version)
    assert named(response) == [("t", ErrorCode.NONE)]


def test_topics_by_name_are_ignored_beside_a_topic_by_id(broker):
    topic_id = broker.create("t", (1, 2))
    broker.create("u", (1, 2))
    response = ask(broker, (topic_id, None), (NO_TOPIC_ID, "u"), (UNKNOWN_ID, None))
    assert named(response) == [("t", ErrorCode.NONE), (None, ErrorCode.UNKNOWN_TOPIC_ID)]


@pytest.mark.parametrize("version", [12, 13])
def test_topic_without_name_and_id_fails_the_whole_request(broker, version):
    response = ask(broker, (NO_TOPIC_ID, None), version=version)
    assert named(response) == [("", ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert not response.brokers
    if version >= 13:
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_authorized_operations_are_listed_on_demand(broker):
    broker.create("t", (1, 2))
    silent = ask(broker, (NO_TOPIC_ID, "t"), version=10)
    assert silent.topics[0].topic_authorized_operations == -(1 << 31)
    assert silent.cluster_authorized_operations == -(1 << 31)
    told = ask(
        broker,
        (NO_TOPIC_ID, "t"),
        version=10,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert told.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert told.cluster_authorized_operations == 0b1_1111_1010_0000


def test_an_unknown_id_has_no_authorized_operations(broker):
    topic_id = broker.create("t", (1, 2))
    told = ask(broker, (topic_id, None), (UNKNOWN_ID, None), include_topic_authorized_operations=True)
    operations = {topic.name: topic.topic_authorized_operations for topic in told.topics}
    assert operations == {"t": 0b1101_1111_1000, None: -(1 << 31)}


def test_version_0_lists_living_replicas_only_and_reports_missing_ones(broker):
    broker.create("t", (1, 2))
    broker.fill_isr("t")
    broker.kill(2)
    ((partition,),) = (topic.partitions for topic in ask(broker, (NO_TOPIC_ID, "t"), version=0).topics)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1)
    assert partition.replica_nodes == [1]
    ((partition,),) = (topic.partitions for topic in ask(broker, (NO_TOPIC_ID, "t"), version=1).topics)
    assert (partition.error_code, partition.replica_nodes) == (ErrorCode.NONE, [1, 2])


@pytest.mark.parametrize(
    ("name", "partitions", "config"),
    [
        ("__consumer_offsets", 7, ("cleanup.policy", "compact")),
        ("__transaction_state", 5, ("min.insync.replicas", "2")),
        ("ordinary", 3, None),
    ],
)
def test_auto_created_internal_topic_has_the_configs_of_its_coordinator(make_broker, name, partitions, config):
    broker = make_broker(
        {"offsets.topic.num.partitions": "7", "transaction.state.log.num.partitions": "5", "num.partitions": "3"}
    )
    assert named(ask(broker, (NO_TOPIC_ID, name), version=3)) == [(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    topic = broker.image.topics[name]
    assert len(topic.partitions) == partitions
    assert config is None or topic.configs[config[0]] == config[1]


def test_injected_error_answers_its_topic_and_the_others_are_described(broker):
    topic_id = broker.create("t", (1, 2))
    broker.create("u", (1, 2))
    broker.faults.inject(Fault(api="Metadata", topic="t", error="LEADER_NOT_AVAILABLE"))
    expected = [("t", ErrorCode.LEADER_NOT_AVAILABLE), ("u", ErrorCode.NONE)]
    assert named(ask(broker, (NO_TOPIC_ID, "t"), (NO_TOPIC_ID, "u"))) == expected
    assert named(broker.ask(handle_metadata, MetadataRequest(topics=None), 13)) == expected
    (topic,) = ask(broker, (topic_id, None)).topics
    assert (topic.error_code, topic.partitions) == (ErrorCode.LEADER_NOT_AVAILABLE, [])


def test_topic_with_an_injected_error_is_not_created(broker):
    broker.faults.inject(Fault(api="Metadata", error="TOPIC_AUTHORIZATION_FAILED", count=1))
    expected = [("t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    assert named(ask(broker, (NO_TOPIC_ID, "t"), version=3)) == expected
    assert not broker.image.topics
