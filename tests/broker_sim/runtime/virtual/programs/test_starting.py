"""A Python script starts as a copy of a fork server, and runs as if Python had started it."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest

from broker_sim.runtime.virtual import run
from broker_sim.runtime.virtual.programs import Program, starting
from broker_sim.runtime.virtual.programs.fork_script import installed_imports
from broker_sim.runtime.virtual.programs.starting import SCRIPTS, ForkServers

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
SERVES = """
import sys
sys.path.insert(0, {!r})
from fork_script import serve_forks
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
    return ["python", "-S", "-c", SERVES.format(str(starting.FORK_SCRIPT.parent), before)]


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
import os, own, pickle, sys
class Thing: number: int
print(__name__, __file__, sys.argv, sys.path[:2], os.environ["GIVEN"], os.getcwd(), own.value, __builtins__)
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, sys.modules["__main__"].Thing is Thing)
print(Thing.__annotations__)
""",
        "import own\ndef fail():\n    raise ValueError('wrong')\nfail()",
        "import sys\nsys.exit('a text')",
        "import sys\nsys.exit(7)",
        "import atexit\natexit.register(print, 'at exit')\nraise SystemExit",
        "import no_such_module",
        "import json\nprint('never'",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os\nif not os.fork():\n    os._exit(3)\nprint(os.wait()[1])",
    ],
)
def test_script_runs_as_python_runs_it(script, monkeypatch, text):
    monkeypatch.chdir(script(text).parent)
    monkeypatch.setattr(starting, "USUAL_ENVIRONMENT", {})
    real = subprocess.run(
        [sys.executable, "app.py", "one"],
        env={**os.environ, "GIVEN": "a value"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert play(["python", "app.py", "one"], env={"GIVEN": "a value"}) == (real.returncode, real.stdout)


def test_copies_differ_by_seed_and_repeat(script):
    path = script("import os, random, time, uuid; print(random.random(), time.time(), uuid.uuid4(), os.urandom(4))")
    texts = [play(["python", str(path)], seed)[1] for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]
    assert " 1700000001.0 " in texts[0]
    assert SCRIPTS.cpu_s > 0


def test_script_does_not_import_what_it_imports_itself_before_its_turn(script, tmp_path):
    """Its own modules are imported in each copy, installed ones once."""
    path = script(
        """
import base64, own
from package import part
from . import beside
if True:
    import csv
try: import decimal
except ImportError: pass
def later(): import ftplib
import xml.dom.minidom as dom, no_such_module
"""
    )
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import getopt")
    (package / "part.py").write_text("from .other import thing\nfrom ..own import value")
    (package / "other.py").write_text("import heapq")
    assert set(installed_imports(path)) == {"base64", "colorsys", "getopt", "xml.dom.minidom"}


@pytest.mark.parametrize(
    "before",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "import os; os.fork() or os._exit(0)",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import time; time.sleep(1)",
        "import signal; signal.pause()",
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
