"""A cluster in a thread of its own, on real sockets: open and close, verbs, bad input."""

import concurrent.futures
import logging
import random
import select
import socket
import struct
import threading
from contextlib import closing, suppress

import pytest

from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.errors import ApiError, ConfigError, ErrorCode, UnknownBrokerError, WrongStateError
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def cluster():
    with Cluster(brokers=3) as running:
        running.create_topic("topic", 1, 3)
        yield running


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=60)
        self.file = self.socket.makefile("rb")

    def request(self, message, version):
        self.send(message, version)
        return self.answer(message, version)

    def send(self, message, version):
        header = RequestHeader(message.API_KEY, version, 7, "test")
        self.socket.sendall(b"".join(encode_request(header, message)))

    @property
    def has_answer(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def answer(self, message, version):
        correlation_id, response = decode_response(message.API_KEY, version, self.frame())
        assert correlation_id == 7
        return response

    def frame(self):
        (size,) = struct.unpack(">i", self.file.read(4))
        return self.file.read(size)

    def is_closed_by_broker(self):
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True

    def close(self):
        self.file.close()
        self.socket.close()


def connect_when_listening(address):
    """Connect to a restarted broker when its old session has ended."""
    for _ in range(6_000):
        try:
            return Client(address)
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("the broker does not accept clients again")


def create_on_all(cluster, topic):
    """Create a topic with a replica on each of three brokers; returns when they have it."""
    for _ in range(6_000):
        topics = {found.name: found.partitions for found in cluster.status().topics}
        if topic in topics and len(topics[topic][0].replicas) == 3:
            return
        if topic not in topics:
            # On a machine that stands still for a while, a session may have ended.
            with suppress(ApiError):
                cluster.create_topic(topic, 1, 3)
        threading.Event().wait(0.01)
    raise AssertionError(f"{topic} is not on all brokers")


@pytest.fixture
def client(cluster):
    connected = Client(cluster.address(1))
    yield connected
    connected.close()


def test_metadata_names_all_brokers_where_they_listen(cluster, client):
    response = client.request(messages.MetadataRequest(topics=None), 12)
    listed = {f"{broker.host}:{broker.port}" for broker in response.brokers}
    assert listed == set(cluster.bootstrap_servers.split(","))


def test_acknowledged_record_is_on_all_replicas(cluster):
    leader = cluster.leader("topic")
    client = Client(cluster.address(leader))
    answer = client.request(produce_request(("topic", 0)), 9).responses[0].partition_responses[0]
    client.close()
    assert answer.error_code == ErrorCode.NONE
    replicas = cluster.status().partition("topic").replicas
    assert {replica.log_end_offset for replica in replicas} == {answer.base_offset + 1}


def test_unknown_version_of_api_versions_is_answered_in_version_0(client):
    request = struct.pack(">hhihb", 18, 99, 5, -1, 0)
    client.socket.sendall(struct.pack(">i", len(request)) + request)
    _, response = decode_response(18, 0, client.frame())
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [(18, 0, 5)]


@pytest.mark.parametrize(
    "request_bytes",
    [
        struct.pack(">hhih", 3, 99, 1, -1),
        struct.pack(">hhih", 9_999, 0, 1, -1),
        struct.pack(">hhih", 0, 9, 1, 2_000),
        struct.pack(">hhihi", 1, 4, 1, -1, 2_000_000_000),
        b"\x00",
    ],
    ids=["unknown version", "unknown API", "lying client id", "truncated body", "one byte"],
)
def test_malformed_request_closes_only_its_connection(cluster, client, request_bytes):
    client.socket.sendall(struct.pack(">i", len(request_bytes)) + request_bytes)
    assert client.is_closed_by_broker()
    other = Client(cluster.address(1))
    assert other.request(messages.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    other.close()


@pytest.mark.parametrize("size", [-1, 0, 200_000_000])
def test_invalid_frame_size_closes_the_connection(client, size):
    client.socket.sendall(struct.pack(">i", size))
    assert client.is_closed_by_broker()


def test_random_bytes_never_stop_the_broker(cluster, caplog):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(60):
        noisy = Client(cluster.address(rng.randint(1, 3)))
        body = struct.pack(">hh", rng.randint(-5, 120), rng.randint(-1, 18)) + rng.randbytes(rng.randint(0, 300))
        noisy.socket.sendall(struct.pack(">i", len(body)) + body)
        noisy.close()
    for broker_id in (1, 2, 3):
        calm = Client(cluster.address(broker_id))
        assert calm.request(messages.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
        calm.close()
    # What is not understood is a warning; an error is what nobody has thought of.
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_paused_broker_answers_only_when_it_is_resumed(cluster):
    cluster.pause(2)
    try:
        client = Client(cluster.address(2))
        header = RequestHeader(18, 0, 1, None)
        client.socket.sendall(b"".join(encode_request(header, messages.ApiVersionsRequest())))
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
    finally:
        cluster.resume(2)
    client.socket.settimeout(60)
    assert client.socket.recv(1)
    client.close()


@pytest.fixture
def short_session_cluster():
    """A cluster with short broker sessions; on a machine that stands still they end as well."""
    configs = {"broker.session.timeout.ms": "600", "broker.heartbeat.interval.ms": "200"}
    with Cluster(brokers=3, configs=configs) as running:
        running.create_topic("topic", 1, 3)
        yield running


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_ended_broker_closes_its_connections_and_restarts_on_its_port(short_session_cluster, end):
    cluster = short_session_cluster
    address = cluster.address(3)
    client = Client(address)
    getattr(cluster, end)(3)
    assert client.is_closed_by_broker()
    client.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=60)
    cluster.start(3, wait=False)
    again = connect_when_listening(address)
    metadata = again.request(messages.MetadataRequest(topics=None), 12)
    assert [topic.name for topic in metadata.topics] == ["topic"], "it has the metadata when it accepts clients"
    assert again.request(messages.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    again.close()


def cut_off_while_it_serves(cluster):
    cluster.disconnect_clients(3)


def cut_off_before_it_listens(cluster):
    cluster.kill(3)
    # Cut off from the controller it gets no metadata, so it does not listen before `reconnect`.
    cluster.disconnect(3)
    cluster.start(3, wait=False)
    cluster.disconnect_clients(3)
    with pytest.raises(ConnectionRefusedError):
        Client(cluster.address(3))
    cluster.reconnect(3)


@pytest.mark.parametrize("cut_off", [cut_off_while_it_serves, cut_off_before_it_listens])
def test_broker_cut_off_from_clients_answers_when_they_are_reconnected(short_session_cluster, cut_off):
    cluster = short_session_cluster
    cut_off(cluster)
    everything = messages.MetadataRequest(topics=None)
    with closing(connect_when_listening(cluster.address(3))) as client:
        client.send(everything, 12)
        with closing(Client(cluster.address(1))) as other:
            other.request(everything, 12)
        # One event loop serves both brokers, and the first request came before this one.
        assert not client.has_answer
        create_on_all(cluster, "later")
        cluster.reconnect_clients(3)
        answered = client.answer(everything, 12)
    assert {"topic", "later"} == {topic.name for topic in answered.topics}, (
        "the request was read only after the reconnect"
    )
    assert not cluster.status().broker(3).clients_cut_off


def test_clients_reconnected_before_the_broker_listens_are_answered(short_session_cluster):
    cut_off_before_it_listens(short_session_cluster)
    short_session_cluster.reconnect_clients(3)
    with closing(connect_when_listening(short_session_cluster.address(3))) as client:
        assert client.request(messages.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_cut_off_from_clients_ends_when_the_broker_is_killed(short_session_cluster):
    short_session_cluster.disconnect_clients(3)
    short_session_cluster.kill(3)
    short_session_cluster.start(3, wait=False)
    with closing(connect_when_listening(short_session_cluster.address(3))) as client:
        assert client.request(messages.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("verb", "broker_id", "error"),
    [("pause", 9, UnknownBrokerError), ("resume", 1, WrongStateError), ("start", 1, WrongStateError)],
)
def test_verb_in_a_wrong_state_is_refused_with_the_reason(cluster, verb, broker_id, error):
    with pytest.raises(error, match=str(broker_id)):
        getattr(cluster, verb)(broker_id)


def test_refused_topic_has_kafkas_error_code(cluster):
    with pytest.raises(ApiError) as refused:
        cluster.create_topic("too-many", 1, 7)
    assert refused.value.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_bad_configuration_is_refused_in_one_line_with_key_and_value():
    with pytest.raises(ConfigError, match=r"soon.*replica\.lag\.time\.max\.ms") as refused:
        Cluster(configs={"replica.lag.time.max.ms": "soon"})
    assert "\n" not in str(refused.value)


def test_error_of_a_port_in_use_names_the_remedy():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}.*--port"):
            Cluster(brokers=2, ports=[0, port]).open()


def test_close_frees_the_ports_and_ends_all_threads():
    before = set(threading.enumerate())
    cluster = Cluster(brokers=2).open()
    address = cluster.address(1)
    cluster.close()
    cluster.close()
    assert not (set(threading.enumerate()) - before)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=60)


def test_cluster_is_opened_only_once():
    cluster = Cluster(brokers=1)
    with cluster:
        with pytest.raises(RuntimeError, match="already"):
            cluster.open()
        assert cluster.status().broker(1).state == "running"
    with pytest.raises(RuntimeError, match="only once"):
        cluster.open()


def test_verbs_of_a_closed_cluster_are_refused():
    cluster = Cluster(brokers=1)
    cluster.close()
    with pytest.raises(RuntimeError, match="is not running"):
        cluster.status()
    with cluster:
        pass
    with pytest.raises(RuntimeError, match="is not running"):
        cluster.pause(1)
    with pytest.raises(RuntimeError, match="is not running"):
        cluster.start(1, wait=False)


def test_interrupt_during_open_leaves_no_thread(monkeypatch):
    result = concurrent.futures.Future.result

    def interrupt(*_):
        monkeypatch.setattr(concurrent.futures.Future, "result", result)
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    cluster = Cluster(brokers=1)
    monkeypatch.setattr(concurrent.futures.Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cluster.open()
    assert not (set(threading.enumerate()) - before)
