"""A Python script starts as a copy of a fork server, and runs as if Python had started it."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading

import pytest

from broker_sim.runtime.virtual import run
from broker_sim.runtime.virtual.programs import Program, starting
from broker_sim.runtime.virtual.programs.starting import SCRIPTS, ForkServers, first_imports, script_server

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
SERVES = """
import sys
sys.path.insert(0, {!r})
from fork_hook.sitecustomize import serve_forks
{}
serve_forks()
"""


def play(command, seed=1, **options):
    async def main(loop):
        await asyncio.sleep(1)
        program = Program(loop, "app", command, **options)
        return await program.wait(), program.text

    return run(main, seed)


def that_serves(before=""):
    return ["python", "-S", "-c", SERVES.format(str(starting.FORK_HOOK.parent), before)]


@pytest.fixture
def servers():
    """At most one fork server, which ends with the test."""
    servers = ForkServers(1)
    yield servers
    servers.close()


@pytest.fixture
def script(tmp_path):
    """Write a script beside a module of its own; returns its path."""
    (tmp_path / "own.py").write_text("import colorsys\nvalue = 3")

    def write(text):
        path = tmp_path / "app.py"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        """
import json, os, own, pickle, sys
class Thing: number: int
print({**globals(), "__builtins__": 0, "__loader__": type(__loader__)})
print(sys.argv, sys.orig_argv[1:], sys.path, os.getcwd())
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, Thing.__annotations__)
print({name: value for name, value in os.environ.items() if not name.startswith(("VT_", "LD_"))})
print(sorted({*sys.modules} - {'gc', 'sitecustomize'}))
""",
        "import own\ndef fail():\n    raise ValueError('wrong')\nfail()",
        "import sys\nsys.exit('a text')",
        "import sys\nsys.exit(7)",
        "import atexit\natexit.register(print, 'at exit')\nraise SystemExit",
        "import warnings\nwarnings.warn('stacked', stacklevel=2)\nraise KeyboardInterrupt",
        "import no_such_module",
        "import json\nprint('never'",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os\nif not os.fork():\n    os._exit(3)\nprint(os.wait()[1])",
        "import os, sys\nif len(sys.argv) < 3:\n    os.execv(sys.executable, [*sys.orig_argv, 'two'])\nprint(sys.argv)",
        "import time\nprint(time.localtime(0)[:4], hash('text'))",
    ],
)
def test_script_runs_as_python_runs_it(script, monkeypatch, text):
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    given = {"GIVEN": "a value", "TZ": "America/New_York", "PYTHONPATH": "/nowhere"}
    monkeypatch.chdir(script(text).parent)
    monkeypatch.setattr(starting, "USUAL_ENVIRONMENT", {})
    real = subprocess.run(
        [sys.executable, "app.py", "one"],
        env={**os.environ, **given},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    code, printed = play(["python", "app.py", "one"], env=given)
    assert printed == real.stdout
    assert code == real.returncode
    assert script_server(["python", "app.py", "one"], given, None) is not None, "it was started anew"


def test_copies_differ_by_seed_and_repeat(script):
    path = script("import os, random, time, uuid; print(random.random(), time.time(), uuid.uuid4(), os.urandom(4))")
    texts = [play(["python", str(path)], seed)[1] for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]
    assert " 1700000001.0 " in texts[0]
    assert SCRIPTS.cpu_s > 0


def test_imports_at_the_beginning_of_a_file_are_known(script):
    path = script(
        '"""What it does."""\nfrom __future__ import annotations\nimport csv, xml.dom\nfrom json import loads\n'
    )
    assert first_imports(path) == ["__future__", "csv", "xml.dom", "json"]
    path.write_text("import csv\nfrom own import value\nimport json")
    assert first_imports(path) == ["csv"], "a module of its own may change what later ones do"
    path.write_text("import csv\nprint(1)\nimport json")
    assert first_imports(path) == ["csv"]
    path.write_text("from . import csv")
    assert first_imports(path) == []
    path.write_text("import json\nprint(")
    assert first_imports(path) == []


def test_folder_is_made_anew_between_two_starts(tmp_path):
    for text in ("first", "second"):
        folder = tmp_path / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "app.py").write_text(f"import os; print({text!r}, os.listdir())")
        assert play(["python", "app.py"], cwd=folder) == (0, f"{text} ['app.py']\n")


def test_output_of_a_package_is_not_lost(script):
    path = script("import this")
    assert play(["python", str(path)])[1].startswith("The Zen of Python")


def test_error_while_it_answers_ends_the_fork_server(servers, monkeypatch):
    server = servers.get(that_serves(), {}, None)
    monkeypatch.setattr(server, "_receive", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        play(server)
    assert server.has_ended
    assert play(servers.get(that_serves(), {}, None))[0] == 0


def test_fork_server_outlives_the_thread_that_has_started_it(servers):
    thread = threading.Thread(target=servers.get, args=(that_serves(), {}, None))
    thread.start()
    thread.join()
    assert not next(iter(servers._servers.values())).has_ended


@pytest.mark.parametrize(
    "before",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "import os; os.fork() or os._exit(0)",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import time; time.sleep(1)",
        "import signal; signal.pause()",
        "print('printed', flush=True)",
        "sys.exit()",
    ],
)
def test_what_cannot_be_copied_is_started_anew(servers, before):
    assert servers.get(that_serves(before), {}, None) is None


def test_fork_server_that_was_killed_is_replaced(servers):
    first = servers.get(that_serves(), {}, None)
    assert servers.get(that_serves(), {}, None) is first
    first.close()
    second = servers.get(that_serves(), {}, None)
    assert second is not first
    assert play(second)[0] == 0
    assert servers.get(that_serves(), {"PYTHONHASHSEED": "3"}, None) is not second
    assert second.has_ended


def test_fork_server_stays_while_a_copy_runs(servers):
    async def main(loop):
        ready = servers.get([*that_serves(), "1"], {}, None)
        app = Program(loop, "app", ready)
        servers.get([*that_serves(), "2"], {}, None)
        assert not ready.has_ended
        code = await app.wait()
        servers.get([*that_serves(), "3"], {}, None)
        assert ready.has_ended
        return code

    assert run(main, 1) == 0
