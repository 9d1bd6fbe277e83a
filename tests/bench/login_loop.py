"""How long a broker's loop lets a request wait: `python login_loop.py MECHANISM SECURITY PARALLEL SECONDS`.

Three brokers run in this process, and so does the client, so that nobody waits for a processor. Its request is in the
socket before a turn of the loop begins, and after each turn it looks whether the answer is there. What counts is the
processor time that the loop's thread has taken between. So many logins are kept in flight as PARALLEL says, and fail.

It prints the median and the 99th percentile in milliseconds.
"""

import asyncio
import gc
import socket
import sys
import time

from login_attack import RAMP_S, attacked, encode, unverified_tls

from broker_sim.cli.logs import logs_on_stderr
from broker_sim.cli.run import GC_THRESHOLDS
from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.cluster import new_event_loop
from broker_sim.protocol import messages

REQUEST = encode(messages.MetadataRequest([]), 9)
READ_BYTES = 1 << 16
PAUSE_TURNS = 3
"""Between an answer and the next request."""
WORK_S = 20e-6
"""A turn that took less had nothing to do. A request behind such a one shows nothing."""


class Meter:
    """Asks one thing after the other, and counts what the loop does meanwhile."""

    def __init__(self, loop, client, seconds):
        self.took_ms = []
        self.ended = loop.create_future()
        self._loop = loop
        self._client = client
        self._end_s = time.perf_counter() + seconds
        self._sent_s = None
        self._turn_s = time.thread_time()
        self._pause = 0
        loop.call_soon(self._turn)

    def _turn(self):
        now_s = time.thread_time()
        if self._sent_s is not None:
            if self._is_answered():
                self.took_ms.append((now_s - self._sent_s) * 1e3)
                self._sent_s, self._pause = None, PAUSE_TURNS
        elif self._pause:
            self._pause -= 1
        elif now_s - self._turn_s > WORK_S or not self.took_ms:
            self._client.send(REQUEST)
            self._sent_s = time.thread_time()
        self._turn_s = time.thread_time()
        if time.perf_counter() < self._end_s:
            self._loop.call_soon(self._turn)
        else:
            self.ended.set_result(None)

    def _is_answered(self):
        try:
            return bool(self._client.recv(READ_BYTES))
        except OSError:  # TLS has an error of its own where nothing is there
            return False


def log_in(port, security):
    """Return a socket of a client that has logged in."""
    client = socket.create_connection(("127.0.0.1", port))
    context = unverified_tls(security)
    if context is not None:
        client = context.wrap_socket(client)
    for request in (messages.SaslHandshakeRequest("PLAIN"), messages.SaslAuthenticateRequest(b"\0billing\0secret")):
        client.sendall(encode(request))
        client.recv(READ_BYTES)
    client.setblocking(False)
    return client


async def measure(mechanism, security, parallel, seconds):
    """Return what each request took."""
    loop = asyncio.get_running_loop()
    async with AsyncCluster(3, security=security, users={"billing": "secret"}) as kafka:
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        port = int(kafka.bootstrap_servers.split(",")[0].rpartition(":")[2])
        with await asyncio.to_thread(log_in, port, security) as client, attacked(port, mechanism, security, parallel):
            await asyncio.sleep(RAMP_S)
            meter = Meter(loop, client, seconds)
            await meter.ended
    return sorted(meter.took_ms)


def main():
    """Run the command line."""
    mechanism, security, parallel, seconds = sys.argv[1:]
    with logs_on_stderr("warning"), asyncio.Runner(loop_factory=new_event_loop) as runner:
        took_ms = runner.run(measure(mechanism, security, int(parallel), float(seconds)))
    print(*(took_ms[int(len(took_ms) * share)] for share in (0.5, 0.99)))


if __name__ == "__main__":
    main()
