"""A client's view of the simulator, kfake, librdkafka's mock and the real Kafka, three brokers each.

All run at the same time; each round measures every one of them once, and what counts is the median
of the rounds. The client takes most of the time of mass production, so the processor time that the
brokers need per message stands beside it.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import quantiles

from client_work import consume, produce, synchronous_ms, topic, wake_up_ms
from options import Options
from peers import (
    KAFKA,
    KFAKE,
    Peer,
    PeerMissingError,
    kafka,
    kfake,
    librdkafka_mock,
    simulator,
)
from report import Report
from turns import Samples

SUITE = "client"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    messages: int
    """Number of messages produced in bulk."""
    latencies: int
    """Number of messages waited for, one after the other."""


FULL = Sizes(messages=200_000, latencies=400)
TINY = Sizes(messages=1_000, latencies=5)


def run(options: Options, report: Report) -> None:
    """Measure all peers that there are."""
    sizes = options.choose(FULL, TINY)
    samples = Samples()
    with ExitStack() as stack:
        peers = []
        built = [kfake] if options.peers else []
        starters = [simulator, *built, librdkafka_mock]
        if options.kafka:
            starters.append(kafka)
        for start in starters:
            try:
                peers.append(stack.enter_context(start()))
            except PeerMissingError as missing:
                report.say(f"without {start.__name__}: {missing}")
        if not options.kafka:
            report.say("without Kafka: ask for it by --kafka")
        for index in range(options.rounds):
            # Every other round goes the other way round, so that nobody is always first.
            for peer in peers[:: 1 if index % 2 == 0 else -1]:
                _round(peer, sizes, samples)
    samples.report_medians(report, SUITE)
    report.print_suite(SUITE)
    _judge(report)


def _round(peer: Peer, sizes: Sizes, samples: Samples) -> None:
    count = sizes.messages

    def bulk(what: str, acks: int) -> None:
        _bulk(peer, samples, what, count, lambda: produce(peer, name, acks, count))

    def one_by_one(what: str, measure: Callable[[Peer, str, int], list[float]]) -> None:
        _latency(peer, samples, what, measure(peer, name, sizes.latencies))

    with topic(peer, 1) as name:
        bulk("produce acks=1, RF 1", 1)
        bulk("produce acks=all, RF 1", -1)
        if peer.keeps_records:
            _bulk(peer, samples, "consume", 2 * count, lambda: consume(peer, name, 2 * count))
        one_by_one("synchronous acks=all, RF 1", synchronous_ms)
        if peer.keeps_records:
            one_by_one("wake-up of a consumer", wake_up_ms)
    if peer.replicates:
        with topic(peer, 3) as name:
            bulk("produce acks=all, RF 3", -1)
            one_by_one("synchronous acks=all, RF 3", synchronous_ms)


def _bulk(peer: Peer, samples: Samples, what: str, messages: int, work: Callable[[], float]) -> None:
    before_s = peer.cpu_s()
    samples.add(peer.name, what, "msg/s", work(), lower=False)
    used_us = (peer.cpu_s() - before_s) * 1e6 / messages
    samples.add(peer.name, f"{what}: brokers' CPU", "µs/msg", used_us, lower=True)


def _latency(peer: Peer, samples: Samples, what: str, latencies_ms: list[float]) -> None:
    percentiles = quantiles(latencies_ms, n=100)
    samples.add(peer.name, f"{what}, p50", "ms", percentiles[49], lower=True)
    samples.add(peer.name, f"{what}, p99", "ms", percentiles[98], lower=True)


def _judge(report: Report) -> None:
    for name in ("produce acks=1, RF 1", "produce acks=all, RF 1", "consume"):
        report.bar_ratio(SUITE, name, KFAKE, name)
    replicated, alone = (f"synchronous acks=all, RF {factor}, p50" for factor in (3, 1))
    report.bar_ratio(SUITE, replicated, KFAKE, alone, at_most=2)
    report.bar_ratio(SUITE, replicated, KAFKA, replicated, at_most=0.25)
