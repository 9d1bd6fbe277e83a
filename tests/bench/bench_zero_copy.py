"""What it costs a broker to send 1 MB of a log on disk to a consumer: by sendfile, and as before.

One connection fetches the same megabytes again and again; they are in the page cache. The processor time
is that of the broker's process, with that of the kernel for it. `READ_AND_WRITE` runs the same program with
views switched off, so that both are measured in one run, in turns.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker_connection import encode_frame
from options import Options
from peers import process_cpu_s
from report import OURS, Report

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import decode_response
from broker_sim.protocol.records import Record, build_batch

SUITE = "zero_copy"
READ_AND_WRITE = "read and write"
BYTES_PER_ROUND = 32 * 1024 * 1024
BATCH_BYTES = 16 * 1024
TOPIC = "t"
SERVER = """
import json, sys, threading
from broker_sim import Cluster
from broker_sim.cluster.cluster import new_event_loop
from broker_sim.log.storage import segment_file
from broker_sim.network.file_sender import FileSender
directory, loop, way = sys.argv[1:]
segment_file.VIEW_BYTES = 1
if way != "sendfile":
    FileSender.can_send_on = staticmethod(lambda transport: False)
if loop == "asyncio":
    sys.modules["uvloop"] = None
with Cluster(1, topics=["t:1:1"], data_dir=directory) as cluster:
    print(json.dumps(cluster.bootstrap_servers), flush=True)
    sys.stdin.readline()
"""


@dataclass(frozen=True)
class Sizes:
    """How much is written and fetched."""

    fetched_bytes: tuple[int, ...]
    """Each is a figure: so much by one fetch."""
    fetches: tuple[int, int]
    """At least and at most so many fetches make one figure."""
    log_bytes: int
    short_rounds: int
    """The least of many short rounds counts: other load can only add to it."""


FULL = Sizes(
    fetched_bytes=(32 * 1024, 64 * 1024, 128 * 1024, 256 * 1024, 1024 * 1024),
    fetches=(50, 500),
    log_bytes=64 * 1024 * 1024,
    short_rounds=5,
)
TINY = Sizes(fetched_bytes=(32 * 1024, 64 * 1024), fetches=(2, 2), log_bytes=256 * 1024, short_rounds=1)


def run(options: Options, report: Report) -> None:
    """Measure both ways on both loops, in turns."""
    sizes = options.choose(FULL, TINY)
    for loop in ("asyncio", "uvloop"):
        samples: dict[tuple[int, str], list[tuple[float, float]]] = {}
        with ExitStack() as stack:
            servers = [
                (name, *stack.enter_context(_server(loop, way, sizes.log_bytes)))
                for name, way in ((OURS, "sendfile"), (READ_AND_WRITE, "read"))
            ]
            for number in range(sizes.short_rounds * options.rounds):
                for size in sizes.fetched_bytes:
                    for name, pid, client in servers[:: 1 if number % 2 == 0 else -1]:
                        figures = _fetch_often(pid, client, size, sizes.fetches)
                        samples.setdefault((size, name), []).append(figures)
        for (size, name), figures in samples.items():
            what = f"fetch of {size // 1024} KB, {loop}"
            cpu_us, wall_us = (min(values) * 1e6 for values in zip(*figures, strict=True))
            report.add(SUITE, f"{what}: broker's CPU", "µs", name, cpu_us, lower=True)
            report.add(SUITE, f"{what}: time", "µs", name, wall_us, lower=True)
    report.print_suite(SUITE)


@contextmanager
def _server(loop: str, way: str, log_bytes: int) -> Iterator[tuple[int, socket.socket]]:
    """Run a broker with a filled log; yield its process id and a connection to it."""
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVER, str(Path(directory, "data")), loop, way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        host, port = json.loads(process.stdout.readline()).split(":")
        try:
            with socket.create_connection((host, int(port))) as client:
                _fill(client, log_bytes)
                yield process.pid, client
        finally:
            process.communicate("\n")


def _fill(client: socket.socket, log_bytes: int) -> None:
    batch = build_batch([Record(b"x" * (BATCH_BYTES - 80), timestamp=int(time.time() * 1e3))])
    produce = messages.ProduceRequest
    data = produce.PartitionProduceData(index=0, records=batch)
    request = produce(
        acks=1, timeout_ms=10_000, topic_data=[produce.TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    frame = encode_frame(ApiKey.PRODUCE, request)
    for _ in range(log_bytes // len(batch)):
        client.sendall(frame)
        _answer(client, bytearray(65_536))


def _fetch_often(pid: int, client: socket.socket, size: int, fetches: tuple[int, int]) -> tuple[float, float]:
    """Return the broker's processor time and the time of one fetch, both in seconds."""
    fetch = messages.FetchRequest
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    request = fetch(
        max_bytes=1 << 30,
        min_bytes=1,
        max_wait_ms=1_000,
        topics=[fetch.FetchTopic(topic=TOPIC, partitions=[partition])],
    )
    frame = encode_frame(ApiKey.FETCH, request)
    place = bytearray(size + 65_536)
    client.sendall(frame)
    _, answer = decode_response(ApiKey.FETCH, 11, bytes(_answer(client, place)))
    assert isinstance(answer, messages.FetchResponse)
    records = answer.responses[0].partitions[0].records
    assert records is not None
    assert len(records) == size
    least, most = fetches
    count = max(least, min(most, BYTES_PER_ROUND // size))
    before_s, start = process_cpu_s(pid), time.perf_counter()
    for _ in range(count):
        client.sendall(frame)
        _answer(client, place)
    wall_s, used_s = time.perf_counter() - start, process_cpu_s(pid) - before_s
    return used_s / count, wall_s / count


def _answer(client: socket.socket, place: bytearray) -> memoryview:
    """Read one frame into `place`; return it without its size."""
    with memoryview(place) as whole:
        got = 0
        wanted = 4
        while got < wanted:
            count = client.recv_into(whole[got:])
            assert count, "the broker closed the connection"
            got += count
            if got >= 4:
                wanted = 4 + int.from_bytes(whole[:4], "big")
    return memoryview(bytes(place[4:wanted])) if wanted < 65_536 else memoryview(place)[4:wanted]
