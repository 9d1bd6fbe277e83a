"""Transactions of one producer, one after the other: ten records over three partitions, and the commit.

The producer is confluent-kafka's, which asks AddPartitionsToTxn for new partitions. A coordinator answers
EndTxn when the end is decided and the markers follow, so a transaction that begins at once may be told
CONCURRENT_TRANSACTIONS, and the client then waits before it asks again: that is in the rate, as in every
application. kfake has no coordinator's log and no replicas, and ends a transaction in one step: it is a
peer at replication factor 1, where nobody has replicas.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import quantiles
from typing import Any

from client_work import PARTITIONS, TIMEOUT_S, VALUE, topic
from confluent_kafka import Consumer, Producer, TopicPartition
from options import Options
from peers import KAFKA, KFAKE, Peer, PeerMissingError, kafka, kfake, simulator
from report import Report
from turns import Samples

SUITE = "transactions"
RECORDS = 10
REPLICATION_FACTORS = (1, 3)
INTERNAL_TOPICS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
)

PLAIN = f"{RECORDS} records over {PARTITIONS} partitions"
WITH_OFFSETS = "the same and a group's offsets"


@dataclass(frozen=True)
class Sizes:
    """How many transactions are measured, and how many run before."""

    transactions: int
    warm_up: int


FULL = Sizes(transactions=200, warm_up=20)
TINY = Sizes(transactions=5, warm_up=1)


def run(options: Options, report: Report) -> None:
    """Measure the peers of each replication factor, all running, in turns; the medians count."""
    sizes = options.choose(FULL, TINY)
    samples = Samples()
    for factor in REPLICATION_FACTORS:
        with ExitStack() as stack:
            peers = _start(stack, factor, options, report)
            for index in range(options.rounds):
                for peer in peers[:: 1 if index % 2 == 0 else -1]:
                    with topic(peer, factor) as name:
                        for kind in (PLAIN, WITH_OFFSETS):
                            _measure(peer, name, kind, factor, sizes, samples)
    samples.report_medians(report, SUITE)
    report.print_suite(SUITE)
    _judge(report)


def _judge(report: Report) -> None:
    for peer_name in (KFAKE, KAFKA):
        for factor in REPLICATION_FACTORS:
            for kind in (PLAIN, WITH_OFFSETS):
                rate, commit = _name(factor, kind), _name(factor, kind) + ": commit, "
                report.bar_ratio(SUITE, rate, peer_name, rate)
                for percentile in ("p50", "p99"):
                    one = commit + percentile
                    report.bar_ratio(SUITE, one, peer_name, one, at_most=1)


def _start(stack: ExitStack, factor: int, options: Options, report: Report) -> list[Peer]:
    """Start the peers that there are, with that replication factor of the internal topics too."""
    configs = dict.fromkeys(INTERNAL_TOPICS, "1") if factor == 1 else {}
    given = [word for key, value in configs.items() for word in ("--config", f"{key}={value}")]
    starters: dict[str, Any] = {
        "simulator": partial(simulator, *given),
    }
    if factor == 1 and options.peers:
        starters["kfake"] = kfake
    if options.kafka:
        starters["Kafka"] = partial(kafka, configs)
    peers: list[Peer] = []
    for name, start in starters.items():
        try:
            peers.append(stack.enter_context(start()))
        except PeerMissingError as missing:
            report.say(f"without {name}: {missing}")
    return peers


def _name(factor: int, kind: str) -> str:
    return f"RF {factor}: {kind}"


def _measure(peer: Peer, name: str, kind: str, factor: int, sizes: Sizes, samples: Samples) -> None:
    """Run transactions; note their rate, how long commits took, what the brokers used."""
    measured = _name(factor, kind)

    def add(what: str, unit: str, value: float, *, lower: bool = True) -> None:
        samples.add(peer.name, what, unit, value, lower=lower)

    producer = Producer(
        {
            "bootstrap.servers": peer.bootstrap_servers,
            "transactional.id": name,
            "linger.ms": 0,
            "socket.nagle.disable": True,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    group = Consumer({"bootstrap.servers": peer.bootstrap_servers, "group.id": name, "log_level": 0})
    offsets_of = group if kind == WITH_OFFSETS else None
    try:
        _run(producer, offsets_of, name, sizes.warm_up)
        before_s, start = peer.cpu_s(), time.perf_counter()
        commits_ms = _run(producer, offsets_of, name, sizes.transactions)
        elapsed_s = time.perf_counter() - start
        used_s = peer.cpu_s() - before_s
    finally:
        group.close()
    percentiles = quantiles(commits_ms, n=100)
    add(measured, "transactions/s", sizes.transactions / elapsed_s, lower=False)
    add(f"{measured}: commit, p50", "ms", percentiles[49])
    add(f"{measured}: commit, p99", "ms", percentiles[98])
    add(f"{measured}: brokers' CPU", "us/transaction", used_s * 1e6 / sizes.transactions)


def _run(producer: Producer, group: Consumer | None, name: str, count: int) -> list[float]:
    """Commit transactions one after the other; return how long each commit took in ms."""
    commits_ms = []
    for number in range(count):
        producer.begin_transaction()
        for index in range(RECORDS):
            producer.produce(name, VALUE, partition=index % PARTITIONS)
        if group is not None:
            positions = [TopicPartition(name, index, number) for index in range(PARTITIONS)]
            metadata = group.consumer_group_metadata()
            producer.send_offsets_to_transaction(positions, metadata, TIMEOUT_S)
        # A commit flushes; here it is the commit alone that counts.
        assert producer.flush(TIMEOUT_S) == 0
        start = time.perf_counter()
        producer.commit_transaction(TIMEOUT_S)
        commits_ms.append((time.perf_counter() - start) * 1e3)
    return commits_ms
