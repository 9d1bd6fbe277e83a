"""What a data directory costs: starts with 5 GB of records, many partitions, and clients on disk and in memory.

One broker's directory is filled once, with batches as clients make them. Then the program is started on it
after a clean shutdown and after `kill -9`, from the start of the process until it is ready, beside a plain
read of the same bytes. All of it may be in the page cache.
"""

import os
import signal
import socket
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from broker_connection import encode_frame
from client_work import consume, produce, topic
from options import Options
from peers import Peer, build_of, simulator
from report import OURS, Report

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.records import Record, build_batch

SUITE = "data_directory"
TOTAL_BYTES = 5 * 1024**3
BATCH_BYTES = 16 * 1024
PARTITIONS = 20
READ_BYTES = 1024 * 1024
MANY_PARTITIONS = 2_000
MESSAGES = 200_000
TOPIC = "records"
PLAIN_READ, IN_MEMORY = "plain read", "simulator, in memory"
EMPTY, CLEAN, KILLED = (
    f"start {how}"
    for how in ("without records", "after a clean shutdown, 5 GB", "after kill -9, 5 GB")
)
FIRST_READ = "first read of each partition after it"
RESIDENT = f"resident memory, {MANY_PARTITIONS} partitions"
RESIDENT_FULL = "resident memory, 5 GB"
SHARES = {"produce": "produce acks=all, RF 1", "consume": "consume"}


def run(options: Options, report: Report) -> None:
    """Fill a directory, start on it again and again, then measure clients."""
    report.say(f"simulator: the {build_of(sys.executable)} build")
    with tempfile.TemporaryDirectory(prefix="broker-sim-bench-") as parent:
        directory = Path(parent, "full")
        _fill(directory, report)
        _starts(directory, options.rounds, report)
        _many_partitions(Path(parent, "many"), report)
        _clients(Path(parent, "clients"), options.rounds, report)
    report.print_suite(SUITE)
    report.bar_below(SUITE, CLEAN, 2_000)
    report.bar_below(SUITE, RESIDENT, 300)
    for name in SHARES.values():
        report.bar_ratio(SUITE, name, IN_MEMORY, name, at_least=0.7)


def _broker(directory: Path, *arguments: str):
    return simulator("--brokers", "1", "--data-dir", str(directory), *arguments)


def _fill(directory: Path, report: Report) -> None:
    start = time.perf_counter()
    with _broker(directory, "--topic", f"{TOPIC}:{PARTITIONS}:1") as peer:
        report.add(SUITE, EMPTY, "ms", OURS, peer.ready_ms, lower=True)
        batch = build_batch(
            [Record(b"x" * 1_000, timestamp=int(time.time() * 1e3))] * (BATCH_BYTES // 1_010)
        )
        produce_request = messages.ProduceRequest
        data = [
            produce_request.PartitionProduceData(index=number, records=batch)
            for number in range(PARTITIONS)
        ]
        topics = [produce_request.TopicProduceData(name=TOPIC, partition_data=data)]
        request = produce_request(acks=1, timeout_ms=10_000, topic_data=topics)
        frame = encode_frame(ApiKey.PRODUCE, request)
        host, port = peer.bootstrap_servers.split(":")
        with (
            socket.create_connection((host, int(port))) as client,
            client.makefile("rb") as answers,
        ):
            for _ in range(TOTAL_BYTES // (PARTITIONS * len(batch))):
                client.sendall(frame)
                answers.read(int.from_bytes(answers.read(4), "big"))
    report.say(f"5 GB written in {time.perf_counter() - start:.0f} s")


def _starts(directory: Path, rounds: int, report: Report) -> None:
    figures: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
    reads = []
    for _ in range(rounds):
        for name in (CLEAN, KILLED):
            with _broker(directory) as peer:
                figures[name].append(peer.ready_ms)
                cpu[name].append(peer.cpu_s() * 1e3)
                if name is CLEAN:
                    start = time.perf_counter()
                    _read_first(peer)
                    figures[FIRST_READ].append((time.perf_counter() - start) * 1e3)
                    # The next start has to recover.
                    os.kill(peer.pids[0], signal.SIGKILL)
                else:
                    figures[RESIDENT_FULL].append(peer.resident_mb())
        start = time.perf_counter()
        _read_all(directory)
        reads.append((time.perf_counter() - start) * 1e3)
    for name in (CLEAN, KILLED):
        report.add(SUITE, name, "ms", OURS, median(figures[name]), lower=True)
        report.add(SUITE, f"{name}: CPU", "ms", OURS, median(cpu[name]), lower=True)
    report.add(SUITE, KILLED, "ms", PLAIN_READ, median(reads), lower=True)
    report.add(SUITE, FIRST_READ, "ms", OURS, median(figures[FIRST_READ]), lower=True)
    report.add(SUITE, RESIDENT_FULL, "MB", OURS, median(figures[RESIDENT_FULL]), lower=True)


def _read_first(peer: Peer) -> None:
    """Fetch the first batch of each partition."""
    fetch = messages.FetchRequest
    partitions = [
        fetch.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=BATCH_BYTES)
        for number in range(PARTITIONS)
    ]
    request = fetch(
        max_bytes=1 << 30,
        min_bytes=1,
        max_wait_ms=1_000,
        topics=[fetch.FetchTopic(topic=TOPIC, partitions=partitions)],
    )
    host, port = peer.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as client, client.makefile("rb") as answers:
        client.sendall(encode_frame(ApiKey.FETCH, request))
        size = int.from_bytes(answers.read(4), "big")
        assert len(answers.read(size)) == size > BATCH_BYTES


def _read_all(directory: Path) -> None:
    place = bytearray(READ_BYTES)
    for path in directory.glob("**/*.log"):
        with path.open("rb", buffering=0) as file:
            while file.readinto(place):
                pass


def _many_partitions(directory: Path, report: Report) -> None:
    with _broker(directory, "--topic", f"many:{MANY_PARTITIONS}:1"):
        pass
    with _broker(directory) as peer:
        report.add(SUITE, RESIDENT, "MB", OURS, peer.resident_mb(), lower=True)
        report.add(
            SUITE, f"start, {MANY_PARTITIONS} partitions", "ms", OURS, peer.ready_ms, lower=True
        )


def _clients(directory: Path, rounds: int, report: Report) -> None:
    """Let the client of the suite `client` work on disk and in memory, in turns."""
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        peers = [
            (OURS, stack.enter_context(simulator("--data-dir", str(directory)))),
            (IN_MEMORY, stack.enter_context(simulator())),
        ]
        for number in range(rounds):
            for name, peer in peers[:: 1 if number % 2 == 0 else -1]:
                with topic(peer, 1) as made:
                    produced = produce(peer, made, -1, MESSAGES)
                    samples[SHARES["produce"], name].append(produced)
                    samples[SHARES["consume"], name].append(consume(peer, made, MESSAGES))
    for (what, name), values in samples.items():
        report.add(SUITE, what, "msg/s", name, median(values))
