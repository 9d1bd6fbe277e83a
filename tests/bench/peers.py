"""The simulator and its peers, each in processes of its own, on free ports of 127.0.0.1.

A peer that cannot run here raises `PeerMissingError` with the reason; what was started is ended by
its process id.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from broker_sim_integration.reference.cache import cached_directory
from broker_sim_integration.reference.clusters.jvm import JvmCluster
from broker_sim_integration.reference.errors import ReferenceClusterError
from report import OURS

BUILD_TIMEOUT_S = 300
READY_TIMEOUT_S = 120
END_TIMEOUT_S = 10
ROOT = Path(__file__).parents[2]
KFAKE_SOURCE = Path(__file__).with_name("kfake")
MOCK = Path(__file__).with_name("librdkafka_mock.py")
KFAKE, MOCK_NAME, KAFKA = "kfake", "librdkafka mock", "Kafka"


class PeerMissingError(Exception):
    """A peer cannot be started on this machine; the text says why."""


@dataclass(frozen=True)
class Peer:
    """A running cluster of three brokers."""

    name: str
    bootstrap_servers: str
    pids: tuple[int, ...]
    ready_ms: float
    replicates: bool = True
    creates_topics: bool = True
    """Whether it serves CreateTopics; the mock makes topics when a client asks for them."""
    keeps_records: bool = True

    def cpu_s(self) -> float:
        """Return the processor time that the peer has used so far."""
        return sum(process_cpu_s(pid) for pid in self.pids)

    def resident_mb(self) -> float:
        """Return the memory that it holds."""
        return sum(resident_mb(pid) for pid in self.pids)


def process_cpu_s(pid: int) -> float:
    """Add up what the threads have run; far finer than the clock ticks of /proc/PID/stat."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


class FamilyCpu:
    """The processor time of a process and of all that come from it.

    Spark's Python workers end without a word to their parent, and their time would be gone with them. So all
    processes are looked at twice a second, and what one had last counts on. What it used since is lost.
    """

    LOOK_S = 0.5

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ticks: dict[tuple[int, str], int] = {}
        self._ended = threading.Event()
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._keep_looking, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def seconds(self) -> float:
        """Return what all of them have run so far."""
        with self._looking:
            self._look(self._pid)
            return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _keep_looking(self) -> None:
        while not self._ended.wait(self.LOOK_S):
            self.seconds()

    def _look(self, pid: int) -> None:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
            tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
            children = [int(child) for task in tasks for child in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            return  # it has ended just now
        fields = text.rpartition(")")[2].split()
        self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])  # pids come again
        for child in children:
            self._look(child)


def resident_mb(pid: int) -> float:
    """Return VmRSS of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no VmRSS")


@contextmanager
def simulator(*arguments: str) -> Iterator[Peer]:
    """Run `broker-sim run` of this virtual environment with three brokers."""
    command = [str(Path(sys.executable).with_name("broker-sim")), "run", "--brokers", "3", *arguments]
    with _running(OURS, command) as peer:
        yield peer


@contextmanager
def kfake() -> Iterator[Peer]:
    """Run franz-go's fake cluster, built on first use."""
    with _running(KFAKE, [str(build_kfake())], replicates=False) as peer:
        yield peer


@contextmanager
def librdkafka_mock() -> Iterator[Peer]:
    """Run librdkafka's mock cluster."""
    with _running(
        MOCK_NAME, [sys.executable, str(MOCK)], replicates=False, creates_topics=False, keeps_records=False
    ) as peer:
        yield peer


@contextmanager
def kafka(configs: Mapping[str, str] | None = None) -> Iterator[Peer]:
    """Run three nodes of the real Kafka on the local Java."""
    cluster = JvmCluster(configs)
    start = time.perf_counter()
    try:
        cluster.open()
    except ReferenceClusterError as error:
        raise PeerMissingError(str(error)) from error
    try:
        ready_ms = (time.perf_counter() - start) * 1e3
        pids = tuple(process.pid for process in cluster._processes.values())
        yield Peer(KAFKA, cluster.bootstrap_servers, pids, ready_ms)
    finally:
        cluster.close()


def build_kfake() -> Path:
    """Return the kfake program; Go fetches and compiles it once."""
    go = shutil.which("go")
    if go is None:
        raise PeerMissingError("Go is missing: apt-get install -y --no-install-recommends golang-go")
    sources = sorted(KFAKE_SOURCE.glob("*"))
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]

    def build(directory: Path) -> None:
        done = subprocess.run(
            [go, "build", "-buildvcs=false", "-o", str(directory / "kfake"), "."],
            cwd=KFAKE_SOURCE,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            raise PeerMissingError(f"Go cannot build kfake: {lines[-1]}")

    return cached_directory(f"kfake-{digest}", build, timeout_s=BUILD_TIMEOUT_S) / "kfake"


@contextmanager
def _running(name: str, command: list[str], **traits: bool) -> Iterator[Peer]:
    """Start a program that prints one line of JSON when it is ready; end it by SIGTERM."""
    start = time.perf_counter()
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError as error:
        raise PeerMissingError(f"{command[0]}: {error.strerror}") from error
    watchdog = threading.Timer(READY_TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready_ms = (time.perf_counter() - start) * 1e3
        watchdog.cancel()
        if not line:
            raise PeerMissingError(f"{command[0]} ended before it was ready")
        servers = json.loads(line)["bootstrap_servers"]
        yield Peer(name, servers, (process.pid,), ready_ms, **traits)
    finally:
        watchdog.cancel()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
