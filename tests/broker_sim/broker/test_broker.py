"""One broker of a cluster in virtual time: its life, its metadata, and the order of its answers."""

import pytest

from broker_sim.cluster.virtual.virtual_client import fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch

KEY = TopicPartition("t", 0)
PRODUCE_VERSION = 9
FETCH_VERSION = 12


class Setup:
    """Broker 1 of three, which leads the only partition, and a client of it."""

    def __init__(self, make_frame_client, replicas=(1, 2, 3)):
        self.cluster = VirtualCluster(3)
        self.cluster.create_topic("t", assignments={0: list(replicas)})
        self.broker = self.cluster.nodes.brokers[1]
        self.client = make_frame_client(self.broker.dispatcher.handle_frame)

    @property
    def log(self):
        return self.broker.replica_manager.partitions[KEY].log

    def produce(self, **options):
        return self.client.send(produce_request(KEY, **options), PRODUCE_VERSION)

    def fetch(self, **options):
        return self.client.send(fetch_request(KEY, **options), FETCH_VERSION)

    def wait(self, responses):
        self.cluster.run_until(lambda: responses)
        return responses[0]


@pytest.fixture
def setup(make_frame_client):
    return Setup(make_frame_client)


@pytest.fixture
def alone(make_frame_client):
    """The same, but broker 1 has the only replica."""
    return Setup(make_frame_client, replicas=(1,))


def error_of(response):
    return response.responses[0].partition_responses[0].error_code


# -- requests ---------------------------------------------------------------------------------------


def test_produce_with_acks_all_is_answered_when_the_followers_have_the_records(setup):
    responses = setup.produce(acks=-1)
    assert (responses, setup.log.log_end_offset) == ([], 1)
    assert error_of(setup.wait(responses)) == ErrorCode.NONE
    assert setup.log.high_watermark == 1


def test_fetch_that_a_produce_completes_is_answered_behind_it(alone):
    assert alone.fetch(max_wait_ms=60_000) == []
    alone.produce(acks=1)
    assert [type(response) for response in alone.client.received] == [messages.ProduceResponse, messages.FetchResponse]
    assert alone.client.received[1].responses[0].partitions[0].records


def test_append_of_the_brokers_own_returns_its_error_and_completes_fetches(alone):
    waiting = alone.fetch(max_wait_ms=60_000)
    unknown = TopicPartition("t", 7)
    batch = build_batch([b"value"])
    assert alone.broker.append_own(unknown, batch) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert waiting == []
    assert alone.broker.append_own(KEY, batch) is ErrorCode.NONE
    assert len(waiting) == 1


# -- followers --------------------------------------------------------------------------------------


def test_fetch_response_has_the_bounds_of_the_log_for_a_follower(alone):
    alone.produce(acks=1)
    bounds = []
    alone.broker.replica_server.serve_log_bounds(KEY, -1, bounds.append)
    assert bounds == [(ErrorCode.NONE, 0, 1)]


def test_follower_gets_the_error_instead_of_the_bounds(setup):
    bounds = []
    server = setup.cluster.nodes.brokers[2].replica_server
    server.serve_log_bounds(KEY, -1, bounds.append)
    server.serve_log_bounds(TopicPartition("u", 0), -1, bounds.append)
    assert bounds == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]


# -- metadata ---------------------------------------------------------------------------------------


def test_older_metadata_is_ignored(setup):
    older = setup.broker.image
    setup.cluster.create_topic("u", 1, 1)
    newest = setup.broker.image
    assert newest.version > older.version
    setup.broker.apply_image(older)
    assert setup.broker.image is newest


def test_parked_produce_ends_when_its_broker_learns_of_its_lost_leadership(setup):
    setup.cluster.pause(2)
    responses = setup.produce(acks=-1, timeout_ms=60_000)
    setup.cluster.disconnect(1)
    controller = setup.cluster.nodes.controller
    setup.cluster.run_until(lambda: controller.image.partition(KEY).leader not in (1, -1))
    assert responses == []
    setup.cluster.reconnect(1)
    assert error_of(setup.wait(responses)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_restarted_broker_serves_from_when_it_is_unfenced(setup):
    assert setup.broker.is_serving
    setup.cluster.kill(1)
    setup.cluster.start(1, wait=False)
    restarted = setup.cluster.nodes.brokers[1]
    assert not restarted.is_serving
    setup.cluster.run_until(lambda: setup.cluster.inside.listeners.is_accepting(1))
    assert restarted.is_serving
    assert not restarted.image.brokers[1].fenced


# -- death ------------------------------------------------------------------------------------------


def test_killed_broker_answers_nothing_that_is_parked(setup):
    setup.cluster.pause(2)
    waiting = [setup.produce(acks=-1, timeout_ms=1_000), setup.fetch(max_wait_ms=1_000)]
    setup.cluster.kill(1)
    setup.cluster.advance(60_000)
    assert waiting == [[], []]
    assert setup.client.closed == []


def test_restarted_broker_keeps_its_log_and_is_a_new_object(setup):
    setup.wait(setup.produce(acks=-1))
    setup.cluster.kill(1)
    setup.cluster.start(1, wait=False)
    restarted = setup.cluster.nodes.brokers[1]
    assert restarted is not setup.broker
    setup.cluster.run_until(lambda: KEY in restarted.replica_manager.partitions)
    assert restarted.replica_manager.partitions[KEY].log.log_end_offset == 1


def test_log_of_a_topic_that_was_deleted_meanwhile_is_not_kept(setup):
    setup.wait(setup.produce(acks=-1))
    topic_id = setup.broker.image.topics["t"].topic_id
    logs = setup.cluster.nodes.node(1).logs
    setup.cluster.kill(1)
    setup.cluster.nodes.controller.delete_topics(["t"])
    setup.cluster.start(1, wait=False)
    assert logs.get(KEY, topic_id) is not None
    setup.cluster.run_until(lambda: setup.cluster.inside.listeners.is_accepting(1))
    assert logs.get(KEY, topic_id) is None
