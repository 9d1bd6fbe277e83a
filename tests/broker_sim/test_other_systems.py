"""What Windows and macOS lack is not needed: tried here without it, because neither is at hand.

The programs run in processes of their own, from which everything is taken that Windows does not have: modules,
functions of the operating system, and what its event loop refuses. That is a model of Windows, not Windows.
"""

import fcntl
import json
import signal
import socket
import subprocess
import sys

import pytest

from broker_sim import ConfigError
from broker_sim.cluster.arguments import check_data_dir
from broker_sim.log.storage.log_directory import LogDirectoryError, lock_directory
from broker_sim.runtime import sockets

TIMEOUT_S = 60
WINDOWS = """
import asyncio, ctypes, importlib.abc, multiprocessing.pool, os, pkgutil, signal, socket, subprocess
import sys, sysconfig
import aiohttp.web, structlog, rich.console, click  # they know Windows by themselves

MISSING = {"fcntl", "resource", "termios", "tty", "pwd", "grp", "uvloop"}

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for name in MISSING:
    sys.modules.pop(name, None)
for module, names in {
    os: "sendfile pread pwrite preadv pwritev sysconf fork forkpty O_CLOEXEC getuid geteuid killpg",
    socket: "MSG_MORE SO_REUSEPORT",
    signal: "SIGKILL SIGSTOP SIGCONT SIGHUP SIGUSR1 SIGALRM setitimer pthread_kill",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)

def refuse(*_):
    raise NotImplementedError

for name in "add_reader remove_reader add_writer remove_writer add_signal_handler".split():
    setattr(asyncio.SelectorEventLoop, name, refuse)
sysconfig.get_config_vars()
asyncio.new_event_loop().close()  # Python 3.14 looks for Windows' own loops with the first one
sys.platform = "win32"
"""
ALL_MODULES = """
import importlib, broker_sim, purgatory
for package in (broker_sim, purgatory):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
print("all")
"""
CLUSTER = """
from broker_sim import Cluster, VirtualCluster
from broker_sim.control.client import ControlClient

with Cluster(2, topics=["t:1:2"], control=True) as kafka:
    kafka.produce("t", "one")
    kafka.pause(kafka.followers("t", 0)[0])
    status = ControlClient(kafka.control_url).get("/status")
    print(len(status["brokers"]), kafka.records("t")[0].value)
with VirtualCluster(3, topics=["t:1:3"]) as kafka:
    kafka.advance(60_000)
    print(len(kafka.isr("t")))
"""
RUN = "from broker_sim.cli import main; sys.argv[1:] = ['run', '--brokers', '1']; main()"
CHAOS = "from broker_sim.cli import main; sys.argv[1:] = ['chaos', *{}, '--', sys.executable, '-c', '']; main()"


def start(program):
    return subprocess.Popen(
        [sys.executable, "-c", WINDOWS + program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_modules_and_clusters_work_without_what_windows_lacks():
    with start(ALL_MODULES + CLUSTER) as process:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stdout, stderr) == (0, "all\n2 b'one'\n3\n", "")


def test_run_ends_on_a_signal_where_the_loop_takes_no_handlers():
    with start(RUN) as process:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        host, port = json.loads(line)["bootstrap_servers"].split(":")
        socket.create_connection((host, int(port)), TIMEOUT_S).close()
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [([], 0, "exits with code 0"), (["--faults", "freeze"], 2, "freeze is possible in virtual time only; ")],
)
def test_chaos_beside_a_command_stops_no_processes(options, code, line):
    with start(CHAOS.format(options)) as process:
        _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code
    assert line in stderr


def test_a_data_directory_is_refused_on_windows_only(monkeypatch):
    check_data_dir("data")
    monkeypatch.setattr(sys, "platform", "win32")
    check_data_dir(None)
    with pytest.raises(ConfigError, match=r"leave out data_dir \(--data-dir\) to keep data in memory"):
        check_data_dir("data")


def test_a_port_is_not_shared_on_windows(monkeypatch):
    # There SO_REUSEADDR lets two programs listen on one port.
    assert sockets._share_option() == socket.SO_REUSEADDR
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    assert sockets._share_option() == -5


def test_a_data_directory_is_locked_once_where_both_locks_are_one(monkeypatch, tmp_path):
    def conflict(*_):
        raise BlockingIOError  # as a BSD does, whose flock of this process is in the way

    monkeypatch.setattr(fcntl, "lockf", conflict)
    monkeypatch.setattr(sys, "platform", "darwin")
    lock_directory(tmp_path)
    with pytest.raises(LogDirectoryError, match="another process or cluster uses this directory"):
        lock_directory(tmp_path)
