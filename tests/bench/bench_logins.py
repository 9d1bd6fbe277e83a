"""What a thousand logins that fail, kept in flight, cost those who have logged in: their p99, and memory.

A client that has logged in asks for metadata every two milliseconds: with nothing else to do, while the attack is
on another cluster of the same machine (what its processor time costs), and while it is on its own cluster.

On a busy machine the client, the attacker and the brokers wait for processors, for some milliseconds each. So the
delay "of the loop's time" is measured apart (`login_loop.py`): what the loop does between the arrival of a request
and its answer.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker_connection import FramedConnection
from login_attack import RAMP_S, ROOT, attacked, encode, unverified_tls
from options import Options
from peers import Peer, resident_mb, simulator
from report import OURS, Report

from broker_sim.protocol import messages

SUITE = "logins"
LOOP = Path(__file__).with_name("login_loop.py")
PAUSE_S = 0.002
ROUTES = (
    ("PLAIN", "PLAIN", "sasl_plaintext"),
    ("SCRAM", "SCRAM-SHA-256", "sasl_plaintext"),
    ("PLAIN over TLS", "PLAIN", "sasl_ssl"),
)
DELAY = "delay for others,"
LIMIT_MS = 2
LIMIT_MB = 100


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    parallel: int
    seconds: float


FULL = Sizes(parallel=1_000, seconds=10.0)
TINY = Sizes(parallel=5, seconds=0.2)


def run(options: Options, report: Report) -> None:
    """Attack by each mechanism, in turns with the others."""
    sizes = options.choose(FULL, TINY)
    for name, mechanism, security in ROUTES if options.peers else ROUTES[:1]:
        _measure(name, mechanism, security, sizes, options.rounds, report)
    report.print_suite(SUITE)
    for metric in [name for suite, name in report.metrics if suite == SUITE]:
        if DELAY in metric:
            report.bar_below(SUITE, metric, LIMIT_MS)
        elif metric.endswith("memory"):
            report.bar_below(SUITE, metric, LIMIT_MB)


def _measure(name: str, mechanism: str, security: str, sizes: Sizes, count: int, report: Report) -> None:
    arguments = ("--security", security, "--user", "billing=secret")
    seen: dict[str, list[list[float]]] = {"alone": [], "neighbour attacked": [], "attacked": []}
    memory: list[float] = []
    refused: list[float] = []
    with simulator(*arguments) as own, simulator(*arguments) as other:
        for _ in range(count):
            seen["alone"].append(_probe(own, security, sizes.seconds))
            for where, victim in (("neighbour attacked", other), ("attacked", own)):
                before_mb = resident_mb(victim.pids[0])
                with attacked(_port(victim), mechanism, security, sizes.parallel) as ended:
                    time.sleep(RAMP_S)
                    seen[where].append(_probe(own, security, sizes.seconds))
                    after_mb = resident_mb(victim.pids[0])
            memory.append(after_mb - before_mb)
            refused.append(ended[0] / (sizes.seconds + RAMP_S))
    for where, rounds in seen.items():
        for title, share in (("p50", 0.5), ("p99", 0.99)):
            value = statistics.median(_quantile(each, share) for each in rounds)
            report.add(SUITE, f"{name}: {where}, {title}", "ms", OURS, value, lower=True)
    on_the_wall = [
        _quantile(attacked, 0.99) - _quantile(neighbour, 0.99)
        for attacked, neighbour in zip(seen["attacked"], seen["neighbour attacked"], strict=True)
    ]
    of_loop = [_p99_of_loop(mechanism, security, sizes) for _ in range(count)]
    for title, delays in (("p99", on_the_wall), ("p99 of the loop's time", of_loop)):
        value = max(0.0, statistics.median(delays))
        report.add(SUITE, f"{name}: {DELAY} {title}", "ms", OURS, value, lower=True)
    report.add(SUITE, f"{name}: memory", "MB", OURS, max(memory), lower=True)
    report.add(SUITE, f"{name}: refused", "logins/s", OURS, statistics.median(refused))


def _port(peer: Peer) -> int:
    return int(peer.bootstrap_servers.split(",")[0].rpartition(":")[2])


def _quantile(took_ms: list[float], share: float) -> float:
    return sorted(took_ms)[int(len(took_ms) * share)]


def _p99_of_loop(mechanism: str, security: str, sizes: Sizes) -> float:
    """Return how long the loop lets a request wait while logins fail, with what the request takes itself."""
    arguments = [mechanism, security, f"{sizes.parallel}", f"{sizes.seconds}"]
    done = subprocess.run(
        [sys.executable, str(LOOP), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    return float(done.stdout.split()[1])


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


def _probe(peer: Peer, security: str, seconds: float) -> list[float]:
    """Return how many milliseconds each request took of a client that has logged in."""
    gc.collect()
    return asyncio.run(_ask_for(seconds, peer, unverified_tls(security)))


async def _ask_for(seconds: float, peer: Peer, context: Any) -> list[float]:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(Client, "127.0.0.1", _port(peer), ssl=context)
    await client.ask(encode(messages.SaslHandshakeRequest("PLAIN")))
    await client.ask(encode(messages.SaslAuthenticateRequest(b"\0billing\0secret")))
    request = encode(messages.MetadataRequest([]), 9)
    took_ms = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        await client.ask(request)
        took_ms.append((time.perf_counter() - start) * 1e3)
        await asyncio.sleep(PAUSE_S)
    client.close()
    return took_ms
