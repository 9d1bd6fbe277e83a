"""Logins with wrong passwords, many at the same time: `python login_attack.py PORT MECHANISM SECURITY PARALLEL`.

It ends with stdin; then it prints how many logins were refused.
"""

import asyncio
import ssl
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from broker_connection import FramedConnection

from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, encode_request

ROOT = Path(__file__).parents[2]
RAMP_S = 1.0
"""Time for the attacker to import its modules and to have its first logins refused."""
FRAME_VERSION = 1
FIRST = {"PLAIN": b"\0billing\0wrong", "SCRAM-SHA-256": b"n,,n=billing,r=abc"}
RETRY_S = 0.01
"""Delay before a failed connection is tried again."""


@contextmanager
def attacked(port, mechanism, security, parallel):
    """Keep logins that fail in flight; the list has how many were refused, when they have ended."""
    command = [sys.executable, __file__, f"{port}", mechanism, security, f"{parallel}"]
    ended = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}
    ) as process:
        yield ended
        ended.append(int(process.communicate()[0]))


def encode(message, api_version=FRAME_VERSION):
    """Return a whole request."""
    header = RequestHeader(message.API_KEY, api_version, 1, "attack")
    return b"".join(encode_request(header, message))


def unverified_tls(security):
    """Return a context that trusts everybody, None without TLS."""
    if security != "sasl_ssl":
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def final(answer):
    """Return SCRAM's second message with a proof that is wrong."""
    start = answer.index(b"r=")
    nonce = answer[start : answer.index(b",s=")]
    return b"c=biws," + nonce + b",p=" + b"A" * 43 + b"="


class FailingLogin(FramedConnection):
    """One login; `ended` is called when the broker has closed the connection."""

    def __init__(self, mechanism, ended):
        super().__init__()
        self._tokens = [FIRST[mechanism]]
        self._is_scram = mechanism != "PLAIN"
        self._handshake = encode(messages.SaslHandshakeRequest(mechanism))
        self._ended = ended
        self._answers = 0

    def connection_made(self, transport):
        """Begin."""
        super().connection_made(transport)
        transport.write(self._handshake)

    def frame_received(self, frame):
        """Send the next token."""
        self._answers += 1
        if self._answers == 1:
            self.transport.write(encode(messages.SaslAuthenticateRequest(self._tokens[0])))
        elif self._answers == 2 and self._is_scram:
            self.transport.write(encode(messages.SaslAuthenticateRequest(final(frame))))

    def connection_lost(self, error):
        """Tell that it has ended."""
        self._ended()


async def attack(port, mechanism, security, parallel):
    """Keep so many logins in flight until stdin ends; return how many have ended."""
    loop = asyncio.get_running_loop()
    context = unverified_tls(security)
    count = 0

    async def log_in_for_ever():
        nonlocal count
        while True:
            done = asyncio.Event()
            try:
                login = partial(FailingLogin, mechanism, done.set)
                await loop.create_connection(login, "127.0.0.1", port, ssl=context)
            except OSError:
                await asyncio.sleep(RETRY_S)
                continue
            await done.wait()
            count += 1

    tasks = [loop.create_task(log_in_for_ever()) for _ in range(parallel)]
    await loop.run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    return count


def main():
    """Run the command line."""
    port, mechanism, security, parallel = sys.argv[1:]
    print(asyncio.run(attack(int(port), mechanism, security, int(parallel))))


if __name__ == "__main__":
    main()
