"""Fetch sessions as a client sees them, in versions with names and with ids."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.protocol.messages import FetchRequest

BY_NAME, BY_ID = 12, 13
BOTH = pytest.mark.parametrize("version", [7, BY_NAME, BY_ID, 17])


class Client:
    """One client of broker 1, in one version."""

    def __init__(self, cluster, frames, version):
        self.cluster = cluster
        self.frames = frames
        self.version = version

    def topic_id(self, name):
        return self.cluster.nodes.controller.image.topics[name].topic_id

    def send(self, *keys, session_id=0, epoch=0, forgotten=(), wait_ms=0, max_bytes=1 << 20, rack=""):
        """Send (topic, partition, offset)s; the list gets the response."""
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=max_bytes, isolation_level=0)
        request.session_id, request.session_epoch = session_id, epoch
        for name, number, offset in keys:
            asked = FetchRequest.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
            request.topics.append(self._named(FetchRequest.FetchTopic(partitions=[asked]), name))
        for name, number in forgotten:
            entry = FetchRequest.ForgottenTopic(partitions=[number])
            request.forgotten_topics_data.append(self._named(entry, name))
        if rack:
            request.rack_id = rack
        return self.frames.send(request, self.version)

    def _named(self, topic, name):
        if self.version >= BY_ID:
            topic.topic_id = name if isinstance(name, bytes) else self.topic_id(name)
        else:
            topic.topic = name
        return topic

    def fetch(self, *keys, **options):
        (response,) = self.send(*keys, **options)
        return response


def answers(response):
    """Return (partition, error, bytes) of each answer, in order."""
    return [
        (answer.partition_index, answer.error_code, len(bytes(answer.records or b"")) > 0)
        for topic in response.responses
        for answer in topic.partitions
    ]


@pytest.fixture
def cluster():
    made = VirtualCluster(1)
    made.create_topic("t", 3, 1)
    return made


@pytest.fixture
def client_in(cluster, make_frame_client):
    """Return a function that makes a client of a version."""

    def make(version):
        frames = make_frame_client(cluster.nodes.brokers[1].dispatcher.handle_frame)
        return Client(cluster, frames, version)

    return make


@BOTH
def test_only_news_are_answered(cluster, client_in, version):
    client = client_in(version)
    full = client.fetch(*[("t", number, 0) for number in range(3)])
    assert full.session_id > 0
    assert [number for number, *_ in answers(full)] == [0, 1, 2]
    assert client.fetch(session_id=full.session_id, epoch=1).responses == []
    cluster.produce("t", "v", partition=1)
    news = client.fetch(session_id=full.session_id, epoch=2)
    assert (news.session_id, answers(news)) == (full.session_id, [(1, 0, True)])
    again = client.fetch(("t", 1, 1), session_id=full.session_id, epoch=3)
    assert again.responses == []


@BOTH
def test_parked_fetch_is_woken_by_a_partition_that_it_does_not_name(cluster, client_in, version):
    client = client_in(version)
    full = client.fetch(("t", 0, 0), ("t", 1, 0))
    parked = client.send(session_id=full.session_id, epoch=1, wait_ms=60_000)
    cluster.advance(1_000)
    assert parked == []
    cluster.produce("t", "v", partition=1)
    assert answers(parked[0]) == [(1, 0, True)]


@BOTH
def test_partitions_take_turns(cluster, client_in, version):
    for number in range(3):
        cluster.produce("t", "v", partition=number)
    client = client_in(version)
    full = client.fetch(*[("t", number, 0) for number in range(3)], max_bytes=1)
    assert [found for *_, found in answers(full)] == [True, False, False]
    turns = [answers(client.fetch(session_id=full.session_id, epoch=epoch, max_bytes=1)) for epoch in range(1, 5)]
    assert turns == [[(0, 0, True)], [(1, 0, True)], [(2, 0, True)], [(0, 0, True)]]


def test_session_errors_have_distinct_error_codes(client_in):
    client, other = client_in(BY_NAME), client_in(BY_ID)
    full = client.fetch(("t", 0, 0))

    def error(client, session_id, epoch):
        response = client.fetch(session_id=session_id, epoch=epoch)
        assert (response.session_id, response.responses) == (0, [])
        return response.error_code

    known = full.session_id
    assert error(client, known + 1, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert error(client, known, 2) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert error(other, known, 1) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert client.fetch(session_id=known, epoch=1).error_code == ErrorCode.NONE


@BOTH
def test_id_that_no_session_can_have_fails_the_request(client_in, version):
    response = client_in(version).fetch(("t", 0, 0), session_id=2147483640)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.session_id == 2147483640
    expected = [] if version >= BY_ID else [(0, ErrorCode.UNKNOWN_SERVER_ERROR, False)]
    assert answers(response) == expected


@BOTH
def test_full_fetch_ends_the_session_that_it_names(cluster, client_in, version):
    client = client_in(version)
    cache = cluster.nodes.brokers[1].fetch_manager.cache
    first = client.fetch(("t", 0, 0)).session_id
    second = client.fetch(("t", 0, 0), session_id=first).session_id
    assert second not in (0, first)
    assert cache.session_count == 1
    final = client.fetch(("t", 0, 0), session_id=second, epoch=-1)
    assert (final.session_id, len(final.responses)) == (0, 1)
    assert cache.session_count == 0


@BOTH
def test_session_ends_with_its_last_partition(client_in, version):
    client = client_in(version)
    full = client.fetch(("t", 0, 0), ("t", 1, 0))
    session_id = full.session_id
    kept = client.fetch(session_id=session_id, epoch=1, forgotten=[("t", 0)])
    assert kept.session_id == session_id
    ended = client.fetch(("t", 2, 0), session_id=session_id, epoch=2, forgotten=[("t", 1), ("t", 2)])
    assert (ended.session_id, answers(ended)) == (0, [(2, 0, False)])
    gone = client.fetch(session_id=session_id, epoch=3)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@BOTH
def test_second_request_beside_a_parked_one_ends_that_with_an_error(cluster, client_in, version):
    one, other = client_in(version), client_in(version)
    session_id = one.fetch(("t", 0, 0)).session_id
    parked = one.send(session_id=session_id, epoch=1, wait_ms=500)
    beside = other.send(session_id=session_id, epoch=2, wait_ms=1_000)
    cluster.advance(500)
    assert parked[0].error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert parked[0].session_id == session_id
    cluster.advance(500)
    assert beside[0].error_code == ErrorCode.NONE


@BOTH
def test_unknown_partitions_stay_in_the_session_and_come_last(client_in, version):
    client = client_in(version)
    unknown = (8, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)
    full = client.fetch(("t", 8, 0), ("t", 0, 0))
    assert answers(full) == [(0, 0, False), unknown]
    assert answers(client.fetch(session_id=full.session_id, epoch=1)) == [unknown]


@pytest.mark.parametrize("version", [7, BY_NAME])
def test_topic_with_an_empty_name_is_unknown_in_every_fetch_of_a_session(client_in, version):
    client = client_in(version)
    unknown = (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)
    full = client.fetch(("", 0, 0))
    assert full.session_id
    assert answers(full) == answers(client.fetch(session_id=full.session_id, epoch=1)) == [unknown]


def test_topic_that_is_made_again_is_another_one_in_a_session_of_ids(cluster, client_in):
    client = client_in(17)
    old = client.topic_id("t")
    session_id = client.fetch((old, 0, 0), (b"?" * 16, 0, 0)).session_id
    cluster.delete_topic("t")
    gone = client.fetch(session_id=session_id, epoch=1)
    assert [error for _, error, _ in answers(gone)] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    cluster.create_topic("t", 1, 1)
    both = client.fetch(("t", 0, 0), session_id=session_id, epoch=2)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in both.responses] == [
        (old, ErrorCode.INCONSISTENT_TOPIC_ID),
        (client.topic_id("t"), ErrorCode.NONE),
        (b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_topic_id_that_becomes_known_is_read(cluster, client_in):
    client = client_in(17)
    topic_id = client.topic_id("t")
    session_id = client.fetch((b"?" * 16, 0, 0)).session_id
    session = next(
        found
        for shard in cluster.nodes.brokers[1].fetch_manager.cache._shards
        for found in shard.sessions.values()
        if found.session_id == session_id
    )
    (cached,) = session
    cached.fetch.topic_id = topic_id
    response = client.fetch(session_id=session_id, epoch=1)
    assert answers(response) == [(0, ErrorCode.NONE, False)]
    assert cached.topic == "t"


def test_fault_hits_the_partitions_that_the_session_has_and_does_not_forget(cluster, client_in):
    client = client_in(17)
    session_id = client.fetch(("t", 0, 0), ("t", 1, 0)).session_id
    cluster.inject(Fault(api="Fetch", topic="t", partition=1, error="KAFKA_STORAGE_ERROR", count=1))
    hit = client.fetch(session_id=session_id, epoch=1, wait_ms=60_000)
    assert answers(hit) == [(1, ErrorCode.KAFKA_STORAGE_ERROR, False)]
    assert answers(client.fetch(session_id=session_id, epoch=2)) == [(1, 0, False)]
    forget = Fault(api="Fetch", topic="t", partition=0, lose="request", count=1)
    cluster.inject(forget)
    kept = client.fetch(session_id=session_id, epoch=3, forgotten=[("t", 0)])
    assert kept.session_id == session_id


def test_broker_without_session_slots_creates_no_sessions(make_frame_client):
    cluster = VirtualCluster(1, configs={"max.incremental.fetch.session.cache.slots": 7})
    cluster.create_topic("t", 1, 1)
    frames = make_frame_client(cluster.nodes.brokers[1].dispatcher.handle_frame)
    response = Client(cluster, frames, 17).fetch(("t", 0, 0))
    assert (response.session_id, answers(response)) == (0, [(0, 0, False)])


def test_restarted_broker_uses_new_session_ids(cluster, client_in, make_frame_client):
    ids = {client_in(17).fetch(("t", 0, 0)).session_id for _ in range(4)}
    cluster.kill(1)
    cluster.start(1)
    cluster.run_until(lambda: cluster.leader("t") == 1)
    later = Client(cluster, make_frame_client(cluster.nodes.brokers[1].dispatcher.handle_frame), 17)
    assert ids.isdisjoint({later.fetch(("t", 0, 0)).session_id for _ in range(4)})
