"""Microseconds to read and write messages, beside peers measured in the same run.

kafka-python is a development dependency; kio is compared when it is installed (it reads in native
code).
"""

import contextlib
import importlib
import io
import time
import warnings
from dataclasses import dataclass

from options import Options
from report import OURS, Report

from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode, encode

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer

SUITE = "codec"


@dataclass(frozen=True)
class Sizes:
    """How often and how long each function is called."""

    rounds: int
    round_s: float


FULL = Sizes(rounds=9, round_s=0.01)
TINY = Sizes(rounds=1, round_s=0.0001)


def fastest_us(functions, sizes):
    """Return the best microseconds per call of each function, taken in turns."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(sizes.rounds):
        for name, function in functions.items():
            calls, start = 0, time.perf_counter()
            while (elapsed := time.perf_counter() - start) < sizes.round_s:
                for _ in range(10):
                    function()
                calls += 10
            best[name] = min(best[name], elapsed / calls * 1e6)
    return best


def ours(message, encoded, version):
    return lambda: decode(type(message), version, encoded), lambda: encode(message, version)


def kafka_python(peer, encoded, version):
    message = peer.decode(encoded, version=version)
    message._header = message._min_version = message._max_version = None
    message._version = version
    assert message.encode(version=version) == encoded
    return (lambda: peer.decode(encoded, version=version), lambda: message.encode(version=version))


def kio(message, api, encoded, version):
    """Return kio's reader and writer; ImportError when it is not installed."""
    serial = importlib.import_module("kio.serial")
    kind = "request" if type(message).__name__.endswith("Request") else "response"
    module = importlib.import_module(f"kio.schema.{api}.v{version}.{kind}")
    cls = getattr(module, type(message).__name__)
    reader, writer = serial.entity_reader(cls), serial.entity_writer(cls)
    entity, _ = reader(encoded, 0)

    def write():
        buffer = io.BytesIO()
        writer(buffer, entity)
        return buffer.getvalue()

    assert write() == encoded
    return lambda: reader(encoded, 0), write


def cases():
    produce, fetch = messages.ProduceRequest, messages.FetchRequest
    partition = produce.PartitionProduceData(0, bytes(10_240))
    topic = produce.TopicProduceData("my-topic", partition_data=[partition])
    peer = kafka.protocol.producer.ProduceRequest
    yield "Produce request, 10 KB", produce(None, -1, 30_000, [topic]), 9, "produce", peer

    partitions = [fetch.FetchPartition(i, -1, 100) for i in range(10)]
    request = fetch(max_wait_ms=500, topics=[fetch.FetchTopic("my-topic", partitions=partitions)])
    peer = kafka.protocol.consumer.FetchRequest
    yield "Fetch request, 10 partitions", request, 12, "fetch", peer

    cls, records = messages.FetchResponse, memoryview(bytes(100 * 1024))
    partitions = [cls.PartitionData(i, 0, 100, 100, records=records) for i in range(10)]
    response = cls(responses=[cls.FetchableTopicResponse("my-topic", partitions=partitions)])
    peer = kafka.protocol.consumer.FetchResponse
    yield "Fetch response, 10 x 100 KB", response, 12, "fetch", peer

    cls = messages.MetadataResponse
    partitions = [cls.MetadataResponsePartition(0, i, i % 3, 5, [0, 1, 2], [0, 1, 2]) for i in range(100)]
    response = cls(
        brokers=[cls.MetadataResponseBroker(i, "localhost", 9092 + i) for i in range(3)],
        topics=[cls.MetadataResponseTopic(0, "my-topic", b"x" * 16, partitions=partitions)],
    )
    peer = kafka.protocol.metadata.MetadataResponse
    yield "Metadata response, 100 partitions", response, 12, "metadata", peer


def run(options: Options, report: Report) -> None:
    """Measure every case."""
    sizes = options.choose(FULL, TINY)
    for title, message, version, api, peer in cases():
        encoded = b"".join(encode(message, version))
        peers = {OURS: ours(message, encoded, version), "kafka-python": kafka_python(peer, encoded, version)}
        with contextlib.suppress(ImportError):
            peers["kio"] = kio(message, api, encoded, version)
        readers, writers = ({name: pair[i] for name, pair in peers.items()} for i in (0, 1))
        for verb, functions in (("read", readers), ("write", writers)):
            for name, value in fastest_us(functions, sizes).items():
                report.add(SUITE, f"{title}, {verb}", "µs", name, value, lower=True)
    report.print_suite(SUITE)
