"""What a thousand logins that fail, kept in flight, cost those who have logged in: their p99, and memory.

A client that has logged in asks for metadata every two milliseconds: with nothing else to do, while the attack is
on another cluster of the same machine (what its processor time costs), and while it is on its own cluster.

The delay "of the broker's time" is the processor time that the broker spends between a request and its answer: on a
busy machine a broker with much to do waits for its processor too. There it is too long still, by what the broker does
until the client itself gets a processor to read the answer.
"""

import asyncio
import gc
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from broker_connection import FramedConnection
from login_attack import encode
from options import Options
from peers import Peer, build_of, resident_mb, simulator
from report import OURS, Report

from broker_sim.protocol import messages

SUITE = "logins"
ATTACK = Path(__file__).with_name("login_attack.py")
PAUSE_S = 0.002
RAMP_S = 1.0
"""Until the attacker has imported what it needs, and its first logins are refused."""
ROUTES = (
    ("PLAIN", "PLAIN", "sasl_plaintext"),
    ("SCRAM", "SCRAM-SHA-256", "sasl_plaintext"),
    ("PLAIN over TLS", "PLAIN", "sasl_ssl"),
)
CPU_CLOCK_OF_PROCESS = 2
"""The lowest bits of such a clock's number on Linux (CPUCLOCK_SCHED); the others are those of the process."""
DELAY = "delay for others,"
LIMIT_MS = 2
LIMIT_MB = 100


class Took(NamedTuple):
    """What a request took, in milliseconds."""

    wall_ms: float
    broker_ms: float
    """Of the processor, by the broker."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    parallel: int
    seconds: float


FULL = Sizes(parallel=1_000, seconds=10.0)
TINY = Sizes(parallel=5, seconds=0.2)


def run(options: Options, report: Report) -> None:
    """Attack by each mechanism, in turns with the others."""
    report.say(f"simulator: the {build_of(sys.executable)} build")
    sizes = options.choose(FULL, TINY)
    for name, mechanism, security in ROUTES if options.peers else ROUTES[:1]:
        _measure(name, mechanism, security, sizes, options.rounds, report)
    report.print_suite(SUITE)
    for metric in [name for suite, name in report.metrics if suite == SUITE]:
        if DELAY in metric:
            report.bar_below(SUITE, metric, LIMIT_MS)
        elif metric.endswith("memory"):
            report.bar_below(SUITE, metric, LIMIT_MB)


def _measure(
    name: str, mechanism: str, security: str, sizes: Sizes, count: int, report: Report
) -> None:
    arguments = ("--security", security, "--user", "billing=secret")
    seen: dict[str, list[list[Took]]] = {"alone": [], "neighbour attacked": [], "attacked": []}
    memory: list[float] = []
    refused: list[float] = []
    with simulator(*arguments) as own, simulator(*arguments) as other:
        for _ in range(count):
            seen["alone"].append(_probe(own, security, sizes.seconds))
            for where, victim in (("neighbour attacked", other), ("attacked", own)):
                before_mb = resident_mb(victim.pids[0])
                with _attacked(victim, mechanism, security, sizes.parallel) as ended:
                    seen[where].append(_probe(own, security, sizes.seconds))
                    after_mb = resident_mb(victim.pids[0])
            memory.append(after_mb - before_mb)
            refused.append(ended[0] / (sizes.seconds + RAMP_S))
    for where, rounds in seen.items():
        for title, share in (("p50", 0.5), ("p99", 0.99)):
            value = statistics.median(_quantile(each, "wall_ms", share) for each in rounds)
            report.add(SUITE, f"{name}: {where}, {title}", "ms", OURS, value, lower=True)
    for title, of in (("p99", "wall_ms"), ("p99 of the broker's time", "broker_ms")):
        delays = [
            _quantile(attacked, of, 0.99) - _quantile(neighbour, of, 0.99)
            for attacked, neighbour in zip(
                seen["attacked"], seen["neighbour attacked"], strict=True
            )
        ]
        value = max(0.0, statistics.median(delays))
        report.add(SUITE, f"{name}: {DELAY} {title}", "ms", OURS, value, lower=True)
    report.add(SUITE, f"{name}: memory", "MB", OURS, max(memory), lower=True)
    report.add(SUITE, f"{name}: refused", "logins/s", OURS, statistics.median(refused))


@contextmanager
def _attacked(peer: Peer, mechanism: str, security: str, parallel: int) -> Iterator[list[int]]:
    """Keep logins that fail in flight; the list has how many were refused, when they have ended."""
    command = [sys.executable, str(ATTACK), f"{_port(peer)}", mechanism, security, f"{parallel}"]
    ended: list[int] = []
    environment = {"PYTHONPATH": str(ATTACK.parents[2])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        time.sleep(RAMP_S)
        yield ended
        ended.append(int(process.communicate()[0]))


def _port(peer: Peer) -> int:
    return int(peer.bootstrap_servers.split(",")[0].rpartition(":")[2])


def _quantile(took: list[Took], of: str, share: float) -> float:
    return sorted(getattr(each, of) for each in took)[int(len(took) * share)]


class Client(FramedConnection):
    """Asks one thing after the other."""

    def frame_received(self, frame: bytes) -> None:
        """Take the answer."""
        self.answer.set_result(frame)

    async def ask(self, frame: bytes) -> bytes:
        """Return the answer to a request."""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport.write(frame)
        return await self.answer


def _probe(peer: Peer, security: str, seconds: float) -> list[Took]:
    """Return how long requests took of a client that has logged in."""
    gc.collect()
    return asyncio.run(_ask_for(seconds, peer, unverified_tls(security)))


async def _ask_for(seconds: float, peer: Peer, context: Any) -> list[Took]:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(Client, "127.0.0.1", _port(peer), ssl=context)
    await client.ask(encode(messages.SaslHandshakeRequest("PLAIN")))
    await client.ask(encode(messages.SaslAuthenticateRequest(b"\0billing\0secret")))
    request = encode(messages.MetadataRequest([]), 9)
    broker = peer.pids[0]
    took = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        before_ms = _run_ms(broker)
        await client.ask(request)
        wall_ms = (time.perf_counter() - start) * 1e3
        took.append(Took(wall_ms, _run_ms(broker) - before_ms))
        await asyncio.sleep(PAUSE_S)
    client.close()
    return took


def _run_ms(pid: int) -> float:
    """Return how long a process has run, until now: what /proc says is older by up to a tick of the system."""
    clock = ~pid << 3 | CPU_CLOCK_OF_PROCESS
    return time.clock_gettime(clock) * 1e3


def unverified_tls(security: str) -> ssl.SSLContext | None:
    """Return a context that trusts everybody, None without TLS."""
    if security != "sasl_ssl":
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
