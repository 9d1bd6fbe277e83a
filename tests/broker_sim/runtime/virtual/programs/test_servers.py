"""A program listens on ports of its host: others ask it, it asks itself, and a port has one owner."""

import asyncio
import shutil

import pytest

from broker_sim.runtime.virtual import run
from broker_sim.runtime.virtual.programs import Program

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
WEB_SERVICE = """
import http.server, sys, threading, time, urllib.request

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(2)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"well since %d s" % (time.monotonic() - 1000))

server = http.server.ThreadingHTTPServer((sys.argv[1], 8080), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
time.sleep(100)
print(urllib.request.urlopen("http://127.0.0.1:8080/health").read().decode())
server.shutdown()
server.server_close()
time.sleep(100)
"""
ASYNCIO = """
import asyncio

async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
    writer.close()

async def main():
    server = await asyncio.start_server(echo, "localhost", 0, limit=1_000_000)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000_000)
    writer.write(b"much " * 100_000 + b"\\n")
    print(len(await reader.readline()), writer.get_extra_info("peername")[1] == port)
    writer.close()
    await asyncio.sleep(1)

asyncio.run(main())
"""
TAKEN = """
import errno, socket
first = socket.create_server(("127.0.0.1", 8080))
try:
    socket.create_server(("", 8080))
except OSError as error:
    print(error.errno == errno.EADDRINUSE)
first.close()
free = socket.socket()
free.bind(("127.0.0.1", 0))
print(free.getsockname()[1] > 1024)
socket.create_server(("127.0.0.1", 8080)).close()
"""


async def health_of(host):
    reader, writer = await asyncio.open_connection(host, 8080)
    writer.write(b"GET /health HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.decode().splitlines()[-1]


@pytest.mark.parametrize("address", ["127.0.0.1", ""])
def test_web_services_of_two_programs_are_reached_by_their_host_names(address):
    async def main(loop):
        command = ("python", "-S", "-c", WEB_SERVICE, address)
        programs = [Program(loop, name, command) for name in ("web-1", "web-2")]
        await asyncio.sleep(10)
        answers = await asyncio.gather(health_of("web-1"), health_of("web-2"), health_of("web-1"))
        codes = [await program.wait() for program in programs]
        with pytest.raises(ConnectionRefusedError):
            await health_of("web-1")
        return answers, codes, programs[0].text

    answers, codes, text = run(main, 1)
    assert answers == ["well since 12 s"] * 3
    assert codes == [0, 0]
    assert text.splitlines()[-1] == "well since 102 s"


def test_killed_program_closes_its_port_and_the_next_one_takes_it():
    async def main(loop):
        for number, answer in ((1, "well since 7 s"), (2, "well since 15 s")):
            program = Program(loop, "web", ("python", "-S", "-c", WEB_SERVICE, ""), start=number)
            await asyncio.sleep(5)
            assert await health_of("web") == answer
            asking = asyncio.create_task(health_of("web"))
            await asyncio.sleep(1)
            program.kill()
            with pytest.raises((ConnectionError, IndexError)):
                await asking
            with pytest.raises(ConnectionRefusedError):
                await health_of("web")

    run(main, 1)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(ASYNCIO, ["500001 True"], id="asyncio"),
        pytest.param(TAKEN, ["True", "True"], id="taken"),
    ],
)
def test_program_sees_what_it_sees_in_real_time(text, lines):
    async def main(loop):
        program = Program(loop, "app", ("python", "-S", "-c", text))
        assert await program.wait() == 0, program.text
        return program.text.splitlines()

    assert run(main, 1) == lines
