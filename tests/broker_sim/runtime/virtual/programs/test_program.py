"""A program is killed, frozen and told signals at exact virtual times; what it may not do is refused by name."""

import asyncio
import fcntl
import platform
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from broker_sim.runtime.virtual import EscapeError, VirtualDeadlockError, run
from broker_sim.runtime.virtual.programs import (
    NoVirtualProgramsError,
    Program,
    ProgramHangsError,
    compiling,
    os_process,
)
from broker_sim.runtime.virtual.programs.connection import Server

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
TICKS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(f"told at {time.monotonic() - 1000:.3f}"))
while True:
    print(f"{time.monotonic() - 1000:.3f}")
    time.sleep(1)
"""


def play(scenario, *command, seed=1, **options):
    async def main(loop):
        it = Program(loop, "app", command, **options)
        result = await scenario(it)
        return result, it

    return run(main, seed)


def python(text):
    return "python", "-S", "-c", text


def play_beside(serve, text):
    """Return the exit code and the output of a program of Python beside a server at 127.0.0.1:9000."""

    async def main(loop):
        async with await asyncio.start_server(serve, "127.0.0.1", 9000):
            app = Program(loop, "app", python(text))
            return await app.wait(), app.text

    return run(main, 1)


async def read_all(reader, writer):
    while await reader.read(65_536):
        pass
    writer.close()


async def until_the_end(app):
    return await app.wait()


def test_hours_take_no_time_and_output_has_its_virtual_time():
    moments = []

    async def main(loop):
        app = Program(
            loop,
            "app",
            python("import time; print('one'); time.sleep(7200); print('two')"),
            on_output=lambda line: moments.append((line, round(loop.time()))),
        )
        return await app.wait()

    assert run(main, 1) == 0
    assert moments == [("one", 0), ("two", 7200)]


def test_signal_comes_at_its_exact_time():
    async def scenario(app):
        await asyncio.sleep(2.25)
        app.send_signal()
        return await app.wait()

    code, app = play(scenario, *python(TICKS))
    assert code == 1
    assert app.text.splitlines()[-1] == "told at 2.250"


def test_killed_program_is_gone_at_once():
    async def scenario(app):
        await asyncio.sleep(2.5)
        app.kill()
        await asyncio.sleep(10)
        return await app.wait()

    code, app = play(scenario, *python(TICKS))
    assert code == -9
    assert app.text.split() == ["0.000", "1.000", "2.000"]


def test_frozen_program_misses_time():
    async def scenario(app):
        await asyncio.sleep(1.5)
        app.process.freeze()
        await asyncio.sleep(10)
        app.process.resume()
        await asyncio.sleep(0.25)
        app.kill()

    _, app = play(scenario, *python(TICKS))
    assert app.text.split() == ["0.000", "1.000", "11.500"]


def test_wall_clock_that_is_off_is_seen():
    async def scenario(app):
        app.process.step_clock(3600)
        return await app.wait()

    _, off = play(scenario, *python("import time; print(time.time())"))
    _, right = play(until_the_end, *python("import time; print(time.time())"))
    assert float(off.text) - float(right.text) == pytest.approx(3600)


def test_connections_are_read_when_all_files_of_an_ended_program_are_closed(monkeypatch):
    """The system closes them one by one, so that a loop that looked earlier would see some closed in one run only."""
    states = []
    after_step = Program.after_step

    def look(self, process, flags):
        states.append(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0])
        return after_step(self, process, flags)

    monkeypatch.setattr(Program, "after_step", look)
    many_files = (
        "import os, resource\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
        "for number in range(1000, min(most, 30_000)): os.dup2(0, number)\n"
    )
    play(until_the_end, *python(many_files))
    assert states[-1] == "Z"


@pytest.mark.parametrize("selector", ["Epoll", "Poll", "Select"])
def test_program_writes_on_as_soon_as_its_data_is_read(selector):
    text = f"""
import selectors, socket, time
one = socket.create_connection(("127.0.0.1", 9000))
one.setblocking(False)
selector = selectors.{selector}Selector()
selector.register(one, selectors.EVENT_WRITE)
sent = 0
while sent < 1_000_000:
    try: sent += one.send(bytes(1000))
    except BlockingIOError: selector.select(60)
print(time.monotonic() - 1000)
"""

    assert play_beside(read_all, text) == (0, "0.0\n")


def test_program_writes_on_if_it_polls_an_epoll():
    text = """
import select, socket, time
one = socket.create_connection(("127.0.0.1", 9000))
one.setblocking(False)
epoll, poll = select.epoll(), select.poll()
epoll.register(one, select.EPOLLOUT)
poll.register(epoll, select.POLLIN)
for number in range(1000):
    try: one.send(bytes(1000))
    except BlockingIOError: poll.poll(60_000)
print(time.monotonic() - 1000)
"""

    assert play_beside(read_all, text) == (0, "0.0\n")


def test_many_connections_of_a_program_are_read():
    text = """
import resource, socket
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
ones = [socket.create_connection(("127.0.0.1", 9000)) for _ in range(1100)]
for one in ones: one.sendall(b"x")
for one in ones: one.settimeout(30); one.recv(1)
"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def echo_a_byte(reader, writer):
        writer.write(await reader.read(1))
        writer.close()

    try:
        assert play_beside(echo_a_byte, text) == (0, "")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connection_that_comes_about_when_its_program_has_just_ended_is_closed():
    text = "import socket, time; one = socket.socket(); one.setblocking(False); one.connect_ex(('127.0.0.1', 9000))"

    async def main(loop):
        loop.network.latency_ms = 50
        received = loop.create_future()

        async def serve(reader, writer):
            received.set_result((await reader.read(), app.exit_code))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 9000)
        worker = loop.process("worker")  # it outlives its program, as a worker that is started again does
        app = Program(loop, "app", python(f"{text}; time.sleep(0.1)"), process=worker)
        async with server:
            return await received

    assert run(main, 1) == (b"", 0)


def test_incoming_connection_of_a_program_that_has_just_ended_is_closed(monkeypatch):
    listens = "import socket, time; one = socket.socket(); one.bind(('', 8080)); one.listen(); time.sleep(100)"
    accept = Server._accept

    def accept_and_kill(server):
        accepted = accept(server)
        server._owner.kill()
        return accepted

    monkeypatch.setattr(Server, "_accept", accept_and_kill)

    async def main(loop):
        Program(loop, "app", python(listens), process=loop.process("worker"))
        await asyncio.sleep(1)
        reader, writer = await asyncio.open_connection("worker", 8080)
        assert await reader.read() == b""
        writer.close()

    run(main, 1)


def test_program_does_not_outlive_its_run():
    async def scenario(app):
        await asyncio.sleep(0.5)

    _, app = play(scenario, *python(TICKS))
    assert app.exit_code == -9


@pytest.mark.parametrize(
    ("text", "call"),
    [
        pytest.param(
            "import socket; socket.socket(type=socket.SOCK_DGRAM).bind(('127.0.0.1', 8125))",
            "bind",
            id="datagram-server",
        ),
        pytest.param("import signal; signal.setitimer(signal.ITIMER_PROF, 3)", "processor time", id="profiler"),
        pytest.param(
            "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'a', ('127.0.0.1', 8125))",
            "datagram",
            id="datagram",
        ),
        pytest.param(
            "import ctypes; ctypes.CDLL(None).pthread_rwlockattr_setpshared(bytes(8), 1)",
            "read-write lock of several processes",
            id="shared-rwlock",
        ),
        pytest.param(
            "import ctypes; c = ctypes.CDLL(None); kind = ctypes.create_string_buffer(8);"
            " c.pthread_barrierattr_setpshared(kind, 1); c.pthread_barrier_init(bytes(32), kind, 2)",
            "barrier of several processes",
            id="shared-barrier",
        ),
    ],
)
def test_call_without_a_virtual_form_is_refused_with_its_line(text, call):
    with pytest.raises(EscapeError, match=call) as caught:
        play(until_the_end, *python(f"def deliver():\n    {text}\ndeliver()"))
    assert "in deliver" in str(caught.value)


def test_deadlock_report_names_each_thread():
    text = "import threading\nlock = threading.Lock(); lock.acquire(); lock.acquire()"
    with pytest.raises(VirtualDeadlockError, match=r"program 'app':\n  thread 0 \(python.*\) waits in sem_"):
        play(until_the_end, *python(text))


def test_program_that_never_waits_is_reported_with_its_line(monkeypatch):
    monkeypatch.setattr(os_process, "HANGS_AFTER_S", 0.2)
    monkeypatch.setattr(os_process, "WATCHED_EVERY_S", 0.1)
    text = "def spin():\n    while True: pass\nspin()"
    with pytest.raises(ProgramHangsError, match="without a wait") as caught:
        play(until_the_end, *python(text))
    assert "in spin" in str(caught.value)


def test_program_that_sleeps_in_real_time_is_reported_with_its_line(monkeypatch, tmp_path):
    monkeypatch.setattr(os_process, "STANDS_STILL_AFTER_S", 0.3)
    monkeypatch.setattr(os_process, "WATCHED_EVERY_S", 0.1)
    text = f"import fcntl\ndef lock():\n    fcntl.flock(open({str(tmp_path / 'lock')!r}, 'w'), fcntl.LOCK_EX)\nlock()"
    with (tmp_path / "lock").open("w") as ours:
        fcntl.flock(ours, fcntl.LOCK_EX)
        with pytest.raises(ProgramHangsError, match="waits outside of virtual time") as caught:
            play(until_the_end, *python(text))
    assert "in lock" in str(caught.value)


def test_program_that_computes_or_lacks_a_processor_continues(monkeypatch):
    monkeypatch.setattr(os_process, "STANDS_STILL_AFTER_S", 0.1)
    monkeypatch.setattr(os_process, "WATCHED_EVERY_S", 0.05)
    _, app = play(until_the_end, *python("for _ in range(10_000_000): pass\nprint('over')"))
    assert app.text == "over\n"


def test_loop_on_the_clock_ends():
    text = "import time\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass\nprint('over')"
    _, app = play(until_the_end, *python(text))
    assert app.text == "over\n"


def test_order_of_threads_may_be_drawn():
    text = (
        "import threading, time\n"
        "def say(n):\n    time.sleep(1); print(n)\n"
        "for n in range(6): threading.Thread(target=say, args=(n,)).start()"
    )
    orders = {play(until_the_end, *python(text), order=order)[1].text for order in range(1, 5)}
    assert len(orders) > 1
    assert play(until_the_end, *python(text), order=2)[1].text == play(until_the_end, *python(text), order=2)[1].text


LOSES_AN_UPDATE = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static int read_balance(void) {
    pthread_mutex_lock(&lock);
    int read = balance;
    pthread_mutex_unlock(&lock);
    return read;
}

static void *pay_in(void *nothing) {
    sleep(1);
    int read = read_balance();
    pthread_mutex_lock(&lock);
    balance = read + 1;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, pay_in, 0);
    pthread_create(&other, 0, pay_in, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    printf("%d", balance);
}
"""


LOCKS_INSIDE_LIBC = r"""
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int look_at(struct dl_phdr_info *object, size_t size, void *nothing) {
    (void)object, (void)size, (void)nothing;
    pthread_mutex_lock(&lock);
    return pthread_mutex_unlock(&lock);
}

static void *work(void *nothing) {
    sleep(1);
    for (int i = 0; i < 20; i++) {
        dl_iterate_phdr(look_at, 0);
        flockfile(stdout);
        look_at(0, 0, 0);
        funlockfile(stdout);
    }
    return nothing;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, work, 0);
    pthread_create(&other, 0, work, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    puts("over");
}
"""


@pytest.fixture
def compiled(tmp_path):
    """Return a function that compiles a program in C."""

    def compiled(text):
        (tmp_path / "program.c").write_text(text)
        subprocess.run(["cc", "-o", tmp_path / "program", tmp_path / "program.c", "-lpthread"], check=True)
        return tmp_path / "program"

    return compiled


def test_thread_that_holds_a_lock_of_libc_lets_no_other_run(compiled):
    program = compiled(LOCKS_INSIDE_LIBC)
    for order in range(1, 5):
        assert play(until_the_end, program, order=order)[1].text == "over\n"


def test_drawn_order_finds_a_lost_update_between_two_locks(compiled):
    bank = compiled(LOSES_AN_UPDATE)
    balances = [play(until_the_end, bank, order=order)[1].text for order in range(30)]
    assert balances[0] == "2"  # in the order in which they became ready
    assert set(balances) == {"1", "2"}
    assert balances == [play(until_the_end, bank, order=order)[1].text for order in range(30)]


def test_other_machine_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    compiling.library.cache_clear()
    with pytest.raises(NoVirtualProgramsError, match="Docker") as caught:
        compiling.library()
    assert "\n" not in str(caught.value)


def test_missing_compiler_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    compiling.library.cache_clear()
    with pytest.raises(NoVirtualProgramsError, match="apt-get install gcc") as caught:
        compiling.library()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("calls", "lines"), [(1, 0), (3, 1), (5, 2)])
def test_kill_falls_between_two_statements(calls, lines):
    text = "import os, time\ntime.sleep(1)\nos.write(1, b'one\\n')\nos.write(1, b'two\\n')\ntime.sleep(9)"

    async def scenario(app):
        await asyncio.sleep(0.5)
        app.kill_at_call(calls)
        return await app.wait()

    code, app = play(scenario, *python(text))
    assert code == -9
    assert app.text.split() == ["one", "two"][:lines]


def test_alarm_comes_at_its_time_again_and_again():
    text = (
        "import signal, time\n"
        "signal.signal(signal.SIGALRM, lambda *_: print(round(time.monotonic() - 1000, 3)))\n"
        "signal.setitimer(signal.ITIMER_REAL, 1.5, 2)\n"
        "time.sleep(6)\n"
        "print(signal.alarm(100), signal.alarm(0))\n"
        "time.sleep(200)"
    )
    _, app = play(until_the_end, *python(text))
    assert app.text.splitlines() == ["1.5", "3.5", "5.5", "2 100"]


def test_alarm_ends_a_program_that_waits_for_ever():
    code, _ = play(until_the_end, *python("import signal, threading; signal.alarm(60); threading.Event().wait()"))
    assert code == -14
