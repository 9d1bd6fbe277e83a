"""Fetches from logs on disk: the same answers by sendfile and by reading and writing."""

import socket

import pytest

from broker_sim import Cluster, Fault
from broker_sim.log.storage import segment_file
from broker_sim.network.file_sender import FileSender
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.record_batch import split_batches
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker, iter_records

VERSION = 11
RECORD_BYTES = 30_000


class Client:
    """One connection that fetches and produces."""

    def __init__(self, cluster):
        host, port = cluster.bootstrap_servers.split(",")[0].split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._file = self._socket.makefile("rb")

    def close(self):
        self._file.close()
        self._socket.close()

    def ask(self, api_key, request, version):
        header = RequestHeader(api_key, version, 7, "test")
        self._socket.sendall(b"".join(encode_request(header, request)))
        size = int.from_bytes(self._file.read(4), "big")
        return decode_response(api_key, version, self._file.read(size))[1]

    def produce(self, topic, partition, batch, transactional_id=None):
        produce = messages.ProduceRequest
        data = produce.PartitionProduceData(index=partition, records=batch)
        answer = self.ask(
            ApiKey.PRODUCE,
            produce(
                acks=-1,
                timeout_ms=30_000,
                transactional_id=transactional_id,
                topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])],
            ),
            8,
        )
        assert answer.responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic, partitions, *, max_bytes=1 << 30, isolation=0):
        """Return what the partitions, offset by number, have; one answer."""
        fetch = messages.FetchRequest
        asked = [
            fetch.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=max_bytes)
            for number, offset in partitions.items()
        ]
        answer = self.ask(
            ApiKey.FETCH,
            fetch(
                max_bytes=1 << 30,
                min_bytes=1,
                max_wait_ms=30_000,
                isolation_level=isolation,
                topics=[fetch.FetchTopic(topic=topic, partitions=asked)],
            ),
            VERSION,
        )
        return {data.partition_index: data for topic in answer.responses for data in topic.partitions}


@pytest.fixture(params=["sendfile", "read"])
def way(request, monkeypatch):
    """Which way bytes go; counts the views that are sent."""
    sent = []
    monkeypatch.setattr(segment_file, "VIEW_BYTES", 1_000)
    if request.param == "read":
        monkeypatch.setattr(FileSender, "can_send_on", staticmethod(lambda _: False))
    real = FileSender.send

    def send(self, chunks):
        sent.append(chunks)
        real(self, chunks)

    monkeypatch.setattr(FileSender, "send", send)
    yield request.param
    assert bool(sent) == (request.param == "sendfile")


@pytest.fixture
def cluster(way, tmp_path):
    configs = {"log.segment.bytes": 1 << 20, "transaction.partition.verification.enable": "false"}
    with Cluster(1, topics=["t:3:1"], data_dir=tmp_path, configs=configs) as made:
        yield made


@pytest.fixture
def client(cluster):
    made = Client(cluster)
    yield made
    made.close()


def value(number):
    return number.to_bytes(4, "big") * (RECORD_BYTES // 4)


def values(records):
    return [record.value for batch in split_batches(bytes(records)) for record in iter_records(batch)]


def test_everything_is_fetched_across_segments(client):
    for number in range(80):
        client.produce("t", number % 2, build_batch([Record(value(number))]))
    offsets, found = {0: 0, 1: 0}, {0: [], 1: []}
    while sum(map(len, found.values())) < 80:
        for number, data in client.fetch("t", offsets, max_bytes=200_000).items():
            assert data.error_code == 0
            batches = values(bytes(data.records)[: len(data.records) // _batch() * _batch()])
            found[number] += batches
            offsets[number] += len(batches)
    assert found == {0: [value(number) for number in range(0, 80, 2)], 1: [value(number) for number in range(1, 80, 2)]}


def _batch():
    return len(build_batch([Record(value(0))]))


def test_limits_hold_and_the_last_batch_is_cut(client):
    for number in range(5):
        client.produce("t", 0, build_batch([Record(value(number))]))
    size = _batch()
    for max_bytes, expected in ((1, size), (size + 5, size + 5), (3 * size, 3 * size)):
        data = client.fetch("t", {0: 0}, max_bytes=max_bytes)[0]
        assert len(data.records) == expected
    two = client.fetch("t", {0: 0, 1: 0, 2: 0}, max_bytes=2 * size + 1)
    assert {number: len(data.records or b"") for number, data in two.items()} == {0: 2 * size + 1, 1: 0, 2: 0}


def test_committed_read_gets_the_aborted_transactions(client):
    header = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}
    client.produce("t", 0, build_batch([Record(value(1))]))
    client.produce("t", 0, build_batch([Record(value(2))], base_sequence=0, **header), "id")
    marker = messages.WriteTxnMarkersRequest
    topic = marker.WritableTxnMarkerTopic(name="t", partition_indexes=[0])
    ended = client.ask(
        ApiKey.WRITE_TXN_MARKERS,
        marker(
            markers=[
                marker.WritableTxnMarker(producer_id=9, producer_epoch=0, transaction_result=False, topics=[topic])
            ]
        ),
        1,
    )
    assert ended.markers[0].topics[0].partitions[0].error_code == 0
    client.produce("t", 0, build_batch([Record(value(3))], base_sequence=1, **header), "id")
    data = client.fetch("t", {0: 0}, isolation=1)[0]
    assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions] == [(9, 1)]
    assert (data.last_stable_offset, data.high_watermark) == (3, 4)
    batches = split_batches(bytes(data.records))
    assert len(batches) == 3
    assert len(batches[2]) == len(
        build_end_txn_marker(producer_id=9, producer_epoch=0, coordinator_epoch=0, is_commit=False, timestamp=0)
    )


def test_parked_fetch_and_delayed_answer_come_whole(cluster, client):
    client.produce("t", 0, build_batch([Record(value(1))]))
    cluster.inject(Fault(api="Fetch", delay_ms=20))
    assert values(client.fetch("t", {0: 0})[0].records) == [value(1)]
    waiting = Client(cluster)
    header = RequestHeader(ApiKey.FETCH, VERSION, 7, "test")
    fetch = messages.FetchRequest
    asked = fetch.FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    parked = fetch(
        max_bytes=1 << 20, min_bytes=1, max_wait_ms=30_000, topics=[fetch.FetchTopic(topic="t", partitions=[asked])]
    )
    waiting._socket.sendall(b"".join(encode_request(header, parked)))
    client.produce("t", 0, build_batch([Record(value(2))]))
    size = int.from_bytes(waiting._file.read(4), "big")
    answer = decode_response(ApiKey.FETCH, VERSION, waiting._file.read(size))[1]
    assert values(answer.responses[0].partitions[0].records) == [value(2)]
    waiting.close()


def test_answer_is_whole_although_its_segment_goes_meanwhile(cluster, client):
    for number in range(60):
        client.produce("t", 0, build_batch([Record(value(number))]))
    cluster.inject(Fault(api="Fetch", delay_ms=300))
    header = RequestHeader(ApiKey.FETCH, VERSION, 7, "test")
    fetch = messages.FetchRequest
    asked = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = fetch(max_bytes=1 << 20, topics=[fetch.FetchTopic(topic="t", partitions=[asked])])
    client._socket.sendall(b"".join(encode_request(header, request)))
    cluster.delete_topic("t")
    size = int.from_bytes(client._file.read(4), "big")
    answer = decode_response(ApiKey.FETCH, VERSION, client._file.read(size))[1]
    found = values(bytes(answer.responses[0].partitions[0].records)[: 34 * _batch()])
    assert found == [value(number) for number in range(len(found))]
    assert len(found) == 34
