"""A program starts others: they take part in virtual time, share files and ports, and end with it."""

import asyncio
import shutil
import sys

import pytest

from broker_sim.runtime.virtual import EscapeError, VirtualDeadlockError, run
from broker_sim.runtime.virtual.programs import Program

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
NOW = "import os, signal, subprocess, sys, time\nnow = lambda: round(time.monotonic() - 1000, 3)\n"


def python(text):
    return "python", "-S", "-c", NOW + text


def play(*command, seed=1):
    """Return what the command prints, by lines, and the digest of its run."""

    async def main(loop):
        program = Program(loop, "app", command)
        assert await program.wait() == 0, program.text
        return program.text.splitlines(), loop.trace.digest()

    return run(main, seed)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "if not (pid := os.fork()):\n    time.sleep(3)\n    os._exit(7)\nprint(os.waitpid(pid, 0)[1] >> 8, now())",
            ["7 3.0"],
            id="fork",
        ),
        pytest.param(
            "child = subprocess.run(['sh', '-c', 'echo one; sleep 2; echo two'], capture_output=True, text=True)\n"
            "print(child.stdout.split(), now())",
            ["['one', 'two'] 2.0"],
            id="output-of-a-child",
        ),
        pytest.param(
            "try:\n    subprocess.run(['sleep', '100'], timeout=7)\n"
            "except subprocess.TimeoutExpired:\n    print('late', now())",
            ["late 7.0"],
            id="timeout",
        ),
        pytest.param(
            "import multiprocessing\n"
            "context = multiprocessing.get_context('fork')\n"
            "queue, lock = context.Queue(), context.Lock()\n"
            "def work():\n    with lock: time.sleep(4)\n    queue.put('done')\n"
            "children = [context.Process(target=work) for _ in range(2)]\n"
            "for child in children: child.start()\n"
            "print(queue.get(), now(), queue.get(), now())\n"
            "for child in children: child.join()",
            ["done 4.0 done 8.0"],
            id="multiprocessing",
        ),
        pytest.param(
            "import asyncio\n"
            "async def main():\n"
            "    child = await asyncio.create_subprocess_exec('sh', '-c', 'read word; sleep 3; echo $word', "
            "stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
            "    print((await child.communicate(b'hello\\n'))[0].decode().strip(), child.returncode, now())\n"
            "asyncio.run(main())",
            ["hello 0 3.0"],
            id="asyncio",
        ),
        pytest.param(
            "signal.signal(signal.SIGCHLD, lambda *_: print('a child ends', now()))\n"
            "child = subprocess.Popen(['sleep', '60'])\n"
            "time.sleep(2.5)\nchild.terminate()\nprint(child.wait(), now())\n"
            "child = subprocess.Popen(['sleep', '60'])\n"
            "time.sleep(1)\nchild.kill()\nprint(child.wait(), now())",
            ["a child ends 2.5", "-15 2.5", "a child ends 3.5", "-9 3.5"],
            id="signals",
        ),
    ],
)
def test_python_starts_processes(text, lines):
    assert play(*python(text))[0] == lines


def test_shell_and_its_tools_take_no_time_but_what_they_sleep():
    script = """
        for number in 1 2 3; do sleep 1; echo $number x | sed s/x/y/; done
        trap 'echo told' TERM
        (sleep 2; kill $$) & wait
        timeout 4 sleep 100 || echo $?
        printf 'b\\na\\n' | sort | tr a-z A-Z
        date -u +%T
    """
    lines, digest = play("bash", "-c", script)
    assert lines == ["1 y", "2 y", "3 y", "told", "124", "A", "B", "22:13:29"]
    assert play("bash", "-c", script)[1] == digest


def test_workers_share_the_port_of_their_parent():
    text = """
import socket
server = socket.create_server(("", 8080))
for number in range(2):
    if not os.fork():
        while True:
            connection, _ = server.accept()
            connection.recv(100)
            time.sleep(10)
            connection.sendall(b"%d" % number)
            connection.close()
time.sleep(60)
"""

    async def ask(word):
        reader, writer = await asyncio.open_connection("app", 8080)
        writer.write(word)
        answer = await reader.read()
        writer.close()
        return answer

    async def main(loop):
        program = Program(loop, "app", python(text))
        await asyncio.sleep(5)
        answers = await asyncio.gather(ask(b"a"), ask(b"b"))
        took_s = loop.time() - 5
        program.kill()
        with pytest.raises(ConnectionRefusedError):
            await ask(b"c")
        return sorted(answers), took_s

    answers, took_s = run(main, 1)
    assert answers == [b"0", b"1"]
    assert took_s == pytest.approx(10, abs=0.1)


def test_child_takes_over_sockets_of_its_parent():
    child = """
import socket, sys
server, client = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
server.listen()
near, peer = server.accept()
client.sendall(near.recv(100) + b" " + str(server.getsockname()[1]).encode())
print(client.getpeername()[1], peer[1] > 1024)
"""
    text = f"""
import socket
echo = socket.create_server(("", 7000))
client = socket.create_connection(("127.0.0.1", 7000))
server = socket.socket()
server.bind(("", 8080))
files = server.fileno(), client.fileno()
child = subprocess.Popen([sys.executable, "-S", "-c", {child!r}, *map(str, files)], pass_fds=files)
time.sleep(1)
socket.create_connection(("127.0.0.1", 8080)).sendall(b"port")
print(echo.accept()[0].recv(100).decode())
child.wait()
"""
    assert sorted(play(*python(text))[0]) == ["7000 True", "port 8080"]


def test_children_draw_chance_of_their_own():
    text = (
        "for _ in range(2):\n"
        "    if not os.fork():\n        print(os.urandom(8).hex())\n        os._exit(0)\n"
        "    os.wait()\n"
        "subprocess.run([sys.executable, '-S', '-c', 'import os; print(os.urandom(8).hex())'])\n"
        "print(os.urandom(8).hex())"
    )
    lines, _ = play(*python(text))
    assert len(set(lines)) == 4
    assert play(*python(text))[0] == lines
    assert not set(play(*python(text), seed=2)[0]) & set(lines)


@pytest.mark.parametrize("end", ["exits", "is-killed"])
def test_no_process_outlives_the_program(end):
    text = f"subprocess.Popen(['sh', '-c', 'sleep 5; echo alive']); time.sleep({2 if end == 'exits' else 60})"

    async def main(loop):
        program = Program(loop, "app", python(text))
        await asyncio.sleep(3)
        program.kill()
        await asyncio.sleep(10)
        return program.exit_code, program.text

    assert run(main, 1) == (0 if end == "exits" else -9, "")


def test_frozen_program_is_frozen_with_its_children():
    async def main(loop):
        program = Program(loop, "app", ("sh", "-c", "for i in 1 2 3; do sleep 1; date -u +%S; done & wait"))
        await asyncio.sleep(1.5)
        program.process.freeze()
        await asyncio.sleep(10)
        program.process.resume()
        await program.wait()
        return program.text.split()

    assert run(main, 1) == ["21", "31", "32"]


def test_deadlock_between_processes_is_reported():
    text = "ends = os.pipe()\nif not os.fork():\n    time.sleep(1)\n    os.read(ends[0], 1)\nos.wait()"
    with pytest.raises(VirtualDeadlockError) as caught:
        play(*python(text))
    assert "program 'app':\n  thread 0 (python" in str(caught.value)
    assert "waits in waitpid" in str(caught.value)
    assert "program 'app', process 2:\n" in str(caught.value)
    assert "waits in read for file" in str(caught.value)


def test_call_that_a_child_may_not_make_is_refused_with_its_line():
    child = "import signal\ndef deliver():\n    signal.setitimer(signal.ITIMER_PROF, 3)\ndeliver()"
    with pytest.raises(
        EscapeError, match=r"program 'app', process 2: setitimer of processor time has no virtual form"
    ) as caught:
        play(*python(f"subprocess.run([{sys.executable!r}, '-S', '-c', {child!r}])"))
    assert "in deliver" in str(caught.value)


def test_command_that_is_not_there_is_an_error_of_the_program():
    lines, _ = play(*python("try:\n    subprocess.run(['there-is-none'])\nexcept OSError as error: print(error.errno)"))
    assert lines == ["2"]
