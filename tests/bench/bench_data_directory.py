"""What a data directory costs: starts with 5 GB of records, many partitions, and clients on disk and in memory.

One broker's directory is filled once, with batches as clients make them. Then the program is started on it
after a clean shutdown and after `kill -9`, from the start of the process until it is ready, beside a plain
read of the same bytes. All of it may be in the page cache.
"""

import os
import signal
import socket
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from broker_connection import encode_frame
from client_work import consume, produce, topic
from options import Options
from peers import Peer, simulator
from report import OURS, Report

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.records import Record, build_batch

SUITE = "data_directory"
BATCH_BYTES = 16 * 1024
PARTITIONS = 20
READ_BYTES = 1024 * 1024
TOPIC = "records"
PLAIN_READ, IN_MEMORY = "plain read", "simulator, in memory"
EMPTY = "start without records"
FIRST_READ = "first read of each partition after it"
SHARES = {"produce": "produce acks=all, RF 1", "consume": "consume"}


@dataclass(frozen=True)
class Sizes:
    """How much is written."""

    total_bytes: int
    many_partitions: int
    messages: int

    @property
    def total(self) -> str:
        """What the directory that is started on holds."""
        mb = self.total_bytes // 1024**2
        return f"{mb // 1024} GB" if mb >= 1024 else f"{mb} MB"

    @property
    def clean(self) -> str:
        """Name of the figure: a start after an orderly end."""
        return f"start after a clean shutdown, {self.total}"

    @property
    def killed(self) -> str:
        """Name of the figure: a start that has to recover."""
        return f"start after kill -9, {self.total}"

    @property
    def resident(self) -> str:
        """Name of the figure: memory with many partitions."""
        return f"resident memory, {self.many_partitions} partitions"


FULL = Sizes(total_bytes=5 * 1024**3, many_partitions=2_000, messages=200_000)
TINY = Sizes(total_bytes=4 * 1024**2, many_partitions=20, messages=1_000)


def run(options: Options, report: Report) -> None:
    """Fill a directory, start on it again and again, then measure clients."""
    sizes = options.choose(FULL, TINY)
    with tempfile.TemporaryDirectory(prefix="broker-sim-bench-") as parent:
        directory = Path(parent, "full")
        _fill(directory, sizes, report)
        _starts(directory, sizes, options.rounds, report)
        _many_partitions(Path(parent, "many"), sizes, report)
        _clients(Path(parent, "clients"), sizes, options.rounds, report)
    report.print_suite(SUITE)
    report.bar_below(SUITE, sizes.clean, 2_000)
    report.bar_below(SUITE, sizes.resident, 300)
    for name in SHARES.values():
        report.bar_ratio(SUITE, name, IN_MEMORY, name, at_least=0.7)


def _broker(directory: Path, *arguments: str):
    return simulator("--brokers", "1", "--data-dir", str(directory), *arguments)


def _fill(directory: Path, sizes: Sizes, report: Report) -> None:
    start = time.perf_counter()
    with _broker(directory, "--topic", f"{TOPIC}:{PARTITIONS}:1") as peer:
        report.add(SUITE, EMPTY, "ms", OURS, peer.ready_ms, lower=True)
        batch = build_batch([Record(b"x" * 1_000, timestamp=int(time.time() * 1e3))] * (BATCH_BYTES // 1_010))
        produce_request = messages.ProduceRequest
        data = [produce_request.PartitionProduceData(index=number, records=batch) for number in range(PARTITIONS)]
        topics = [produce_request.TopicProduceData(name=TOPIC, partition_data=data)]
        request = produce_request(acks=1, timeout_ms=10_000, topic_data=topics)
        frame = encode_frame(ApiKey.PRODUCE, request)
        host, port = peer.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as client, client.makefile("rb") as answers:
            for _ in range(sizes.total_bytes // (PARTITIONS * len(batch))):
                client.sendall(frame)
                answers.read(int.from_bytes(answers.read(4), "big"))
    report.say(f"{sizes.total} written in {time.perf_counter() - start:.0f} s")


def _starts(directory: Path, sizes: Sizes, rounds: int, report: Report) -> None:
    clean, killed, full = sizes.clean, sizes.killed, f"resident memory, {sizes.total}"
    figures: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
    reads = []
    for _ in range(rounds):
        for name in (clean, killed):
            with _broker(directory) as peer:
                figures[name].append(peer.ready_ms)
                cpu[name].append(peer.cpu_s() * 1e3)
                if name is clean:
                    start = time.perf_counter()
                    _read_first(peer)
                    figures[FIRST_READ].append((time.perf_counter() - start) * 1e3)
                    # The next start has to recover.
                    os.kill(peer.pids[0], signal.SIGKILL)
                else:
                    figures[full].append(peer.resident_mb())
        start = time.perf_counter()
        _read_all(directory)
        reads.append((time.perf_counter() - start) * 1e3)
    for name in (clean, killed):
        report.add(SUITE, name, "ms", OURS, median(figures[name]), lower=True)
        report.add(SUITE, f"{name}: CPU", "ms", OURS, median(cpu[name]), lower=True)
    report.add(SUITE, killed, "ms", PLAIN_READ, median(reads), lower=True)
    report.add(SUITE, FIRST_READ, "ms", OURS, median(figures[FIRST_READ]), lower=True)
    report.add(SUITE, full, "MB", OURS, median(figures[full]), lower=True)


def _read_first(peer: Peer) -> None:
    """Fetch the first batch of each partition."""
    fetch = messages.FetchRequest
    partitions = [
        fetch.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=BATCH_BYTES)
        for number in range(PARTITIONS)
    ]
    request = fetch(
        max_bytes=1 << 30, min_bytes=1, max_wait_ms=1_000, topics=[fetch.FetchTopic(topic=TOPIC, partitions=partitions)]
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


def _many_partitions(directory: Path, sizes: Sizes, report: Report) -> None:
    with _broker(directory, "--topic", f"many:{sizes.many_partitions}:1"):
        pass
    with _broker(directory) as peer:
        report.add(SUITE, sizes.resident, "MB", OURS, peer.resident_mb(), lower=True)
        what = f"start, {sizes.many_partitions} partitions"
        report.add(SUITE, what, "ms", OURS, peer.ready_ms, lower=True)


def _clients(directory: Path, sizes: Sizes, rounds: int, report: Report) -> None:
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
                    produced = produce(peer, made, -1, sizes.messages)
                    samples[SHARES["produce"], name].append(produced)
                    consumed = consume(peer, made, sizes.messages)
                    samples[SHARES["consume"], name].append(consumed)
    for (what, name), values in samples.items():
        report.add(SUITE, what, "msg/s", name, median(values))
