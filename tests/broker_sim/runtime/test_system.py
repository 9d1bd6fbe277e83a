"""What brokers take from the operating system: real whatever a test replaces, and closed in a forked child."""

import ast
import asyncio
import os
import re
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import freezegun
import pytest

import broker_sim
from broker_sim.runtime import system
from broker_sim.runtime.scheduler import Scheduler, new_event_loop
from broker_sim.runtime.sockets import bind
from broker_sim.runtime.system import Socket, close_descriptor, green_threads, open_descriptor, socket_pair

PACKAGE = Path(broker_sim.__file__).parent
OWN = {PACKAGE / "runtime" / "system.py"}
REPLACED = {
    "select": {"epoll"},
    "socket": {"socket", "socketpair", "create_server"},
    "threading": {"Thread", "Timer"},
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep"},
}
"""What tests replace, by module of the standard library."""
IMPORTS = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(REPLACED)})\b", re.MULTILINE)
TIMEOUT_S = 60


def reached(tree):
    """Return what a module takes of `REPLACED` itself; annotations are only read by people."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            yield from (f"{node.module}.{name}" for name in names & REPLACED.get(node.module, set()))
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in REPLACED.get(node.value.id, ())
        ):
            yield f"{node.value.id}.{node.attr}"


def test_no_module_reaches_for_what_tests_replace():
    reaching = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if path not in OWN and not path.is_relative_to(PACKAGE / "runtime" / "virtual")
        if IMPORTS.search(text := path.read_text())
        for name in reached(ast.parse(text))
    }
    assert reaching == set()


def test_package_files_are_read_while_open_is_replaced():
    program = """
import builtins, io, pathlib
from broker_sim.config.other_configs import other_configs
from broker_sim.protocol.release import releases
from broker_sim.protocol.schema import message_names

def refuse(*_, **__):
    raise FileNotFoundError

builtins.open = io.open = pathlib.Path.open = refuse
assert other_configs() and releases() and message_names()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=TIMEOUT_S)


@pytest.fixture
def replaced_sockets():
    with mock.patch("socket.socket"):
        yield


def test_accepted_connection_is_real_while_sockets_are_replaced(replaced_sockets):
    with closing(new_event_loop()) as loop, closing(bind(loop, "127.0.0.1", 0)) as listening:
        listening.listen()
        with Socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.connect(listening.getsockname())
            connection, address = listening.accept()
            with connection:
                assert type(connection) is Socket
                assert address == client.getsockname()


def test_asyncio_loop_is_woken_while_sockets_are_replaced(replaced_sockets, monkeypatch):
    monkeypatch.delitem(sys.modules, "uvloop", raising=False)
    with closing(new_event_loop()) as loop:
        assert isinstance(loop, asyncio.SelectorEventLoop)
        done = loop.create_future()
        system.Thread(target=loop.call_soon_threadsafe, args=(done.set_result, "woken"), daemon=True).start()
        assert loop.run_until_complete(asyncio.wait_for(done, TIMEOUT_S)) == "woken"


def test_time_of_asyncio_loop_is_real_while_time_is_frozen():
    with closing(asyncio.new_event_loop()) as loop:
        Scheduler(loop)
        before_s = loop.time()
        with freezegun.freeze_time("2024-01-01"):
            frozen_s = loop.time()
        assert before_s <= frozen_s <= loop.time()


def test_loop_with_a_time_of_its_own_keeps_it():
    class Loop(asyncio.SelectorEventLoop):
        def time(self):
            return 7.0

    with closing(Loop()) as loop:
        Scheduler(loop)
        assert loop.time() == 7.0


@pytest.mark.parametrize(
    ("module", "function", "library"),
    [("gevent.monkey", "is_module_patched", "gevent"), ("eventlet.patcher", "is_monkey_patched", "eventlet")],
)
def test_library_that_replaced_threads_is_named(monkeypatch, module, function, library):
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{function: {"thread": True}.get}))
    assert green_threads() == library
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{function: {"subprocess": True}.get}))
    assert green_threads() is None


def test_file_is_real_while_the_files_of_modules_are_replaced(monkeypatch):
    monkeypatch.setattr(system, "os", None)
    descriptor = open_descriptor(os.devnull, os.O_RDONLY)
    assert is_open(descriptor)
    close_descriptor(descriptor)
    assert not is_open(descriptor)


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_child_has_neither_sockets_nor_files(tmp_path):
    one, other = socket_pair()
    held = socket.socket.makefile(one)  # a reference as uvloop's, which outlives `close`
    descriptor = open_descriptor(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
    opened = {one.fileno(), other.fileno(), descriptor}
    with one, other, held:
        child = os.fork()
        if not child:
            close_descriptor(descriptor)  # must not close what has its number now
            os._exit(sum(map(is_open, opened)))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert all(map(is_open, opened))
        close_descriptor(descriptor)
