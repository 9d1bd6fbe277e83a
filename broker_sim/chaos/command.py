"""Runs a command in any language in real time, with a cluster of real sockets that has faults.

The command finds the cluster in `KAFKA_BOOTSTRAP_SERVERS` and the control port in `BROKER_SIM_CONTROL`. The faults
of the schedule begin with the first request of a client, because starting a JVM or compiling takes time. In real
time the schedule repeats exactly, but the command may behave differently.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.chaos import RECOVERY_S
from broker_sim.chaos.faults.action import ScheduleError
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.faults.cluster_faults import ClusterFaults
from broker_sim.chaos.faults.faults import Faults
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.weights import kinds_beside_a_command
from broker_sim.chaos.history import History, InvariantError, read_judgement
from broker_sim.chaos.observer import Leaders, failed_request_text
from broker_sim.chaos.settings import CONFIGS
from broker_sim.chaos.timeline import FAULT, HOW_TO_SEE_ALL, MAX_LINES, Timeline, as_json, timeline_text
from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.virtual.simulated_cluster import SERVERS_VARIABLE
from broker_sim.control.client import CONTROL_VARIABLE
from broker_sim.errors import ApiError, ClusterTimeoutError, WrongStateError
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from broker_sim.chaos.schedule import Schedule
    from broker_sim.chaos.timeline import Moment
    from broker_sim.config import GivenValue
    from broker_sim.handlers.request_log import RequestStatus

COMMAND: Final = "command"
MAX_REQUESTS: Final = 2_000
"""Maximum number of failed requests in a time line."""
_SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The end of a command, and the events until then."""

    command: tuple[str, ...]
    schedule: Schedule
    exit_code: int
    elapsed_s: float
    faults_until_s: float | None
    """End of the last fault, in seconds since the command started; None if no client connected."""
    moments: tuple[Moment, ...]
    begin_with: str = ""
    """Part of the client id for which the faults waited; empty for any client."""
    broken: tuple[str, ...] = ()
    """Texts of the failed judgements."""

    @property
    def code(self) -> int:
        """The exit code of the command; 1 if that is 0 and a judgement has failed."""
        return self.exit_code or bool(self.broken)

    @property
    def summary(self) -> str:
        """One line: exit code, and whether the faults happened."""
        head = f"seed {self.schedule.seed}: exit code {self.exit_code} after {self.elapsed_s:.1f} s"
        if self.faults_until_s is None:
            condition = f" whose id contains {self.begin_with!r}" if self.begin_with else ""
            return f"{head}; no fault happened, because no client{condition} sent a request"
        left_s = self.faults_until_s - self.elapsed_s
        if left_s > 0:
            return f"{head}; the command ended {left_s:.1f} s before the faults were over"
        return f"{head}; all {len(self.schedule.actions)} faults were over"

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for tools."""
        return {
            "command": list(self.command),
            "seed": self.schedule.seed,
            "exit_code": self.exit_code,
            "elapsed_s": self.elapsed_s,
            "faults_until_s": self.faults_until_s,
            "broken": list(self.broken),
            "schedule": str(self.schedule).splitlines(),
            "timeline": as_json(self.moments),
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, *, is_full: bool = False) -> str:
        """Return the time line, with all its lines or the most important ones, and the summary."""
        table = timeline_text(self.moments, None if is_full else MAX_LINES, HOW_TO_SEE_ALL)
        return "\n".join((table, "", self.summary, *self.broken))


def shell_exit_code(code: int) -> int:
    """Return an exit code as a shell gives it: 128 + N for a process ended by signal N, whose `code` is -N."""
    return code if code >= 0 else _SIGNALLED - code


def check_schedule(schedule: Schedule) -> None:
    """Raise ScheduleError for faults that cannot happen beside a command."""
    possible = kinds_beside_a_command()
    for action in schedule.actions:
        check_action(action)
        if action.kind not in possible:
            raise ScheduleError(
                f"{action}: {action.kind} is possible in virtual time only; with a command in real time: "
                f"{', '.join(possible)}"
            )


class CommandFaults:
    """The faults of one command, as methods named after their kinds.

    A command that may be frozen leads a process group.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._is_frozen = False

    def freeze(self, number: int) -> Callable[[], bool]:
        """Stop the command and its child processes (SIGSTOP); the returned function resumes them and returns True."""
        if number != 1:
            raise WrongStateError("the command is worker-1; there are no other workers")
        if self._process.returncode is not None or self._is_frozen:
            raise WrongStateError("the command is not running")
        try:
            os.killpg(self._process.pid, signal.SIGSTOP)
        except OSError as error:
            raise WrongStateError("the command has just ended") from error
        self._is_frozen = True
        return self.thaw

    def thaw(self) -> bool:
        """Resume the command (SIGCONT) if it is stopped; return True."""
        if self._is_frozen:
            self._is_frozen = False
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT)
        return True

    def send_signal(self, number: int) -> None:
        """Send a signal to the command, unless it has ended."""
        self._process.send_signal(number)


class SocketNetwork:
    """A `ClientNetwork` of real sockets, on which cuts are always in both directions.

    A cut ends with the broker's process: a restarted broker is reachable.
    """

    def __init__(self, kafka: AsyncCluster) -> None:
        self._kafka = kafka
        self._brokers = {
            f"{host}:{port}": broker_id for broker_id in kafka.nodes.nodes for host, port in [kafka.address(broker_id)]
        }
        self._cuts: Counter[int] = Counter()
        self.traffic = 0
        """Number of answered requests so far."""

    def has_stopped(self, source: str, target: str) -> bool:
        """Whether any client has connected so far; stopped messages cannot be observed here."""
        del source, target  # all clients are cut off
        return self.traffic > 0

    def cut(self, source: str, target: str) -> None:
        """Block all traffic between clients and a broker. Raises WrongStateError for a dead broker."""
        broker_id = self._brokers[target if source == ANY else source]
        self._kafka.disconnect_clients(broker_id)
        self._cuts[broker_id] += 1

    def mend(self, source: str, target: str) -> None:
        """Undo `cut`; held bytes arrive."""
        broker_id = self._brokers[target if source == ANY else source]
        self._cuts[broker_id] -= 1
        if not self._cuts[broker_id]:
            with suppress(WrongStateError):
                self._kafka.reconnect_clients(broker_id)


class CommandRun:
    """One command under one schedule. Thread rule: the event loop on which `run` is awaited."""

    def __init__(
        self,
        command: Sequence[str],
        schedule: Schedule,
        *,
        topics: Sequence[str] = (),
        configs: Mapping[str, GivenValue] | None = None,
        begin_with: str = "",
        judgements: Sequence[str] = (),
    ) -> None:
        """Faults begin with the first request of a client whose id contains `begin_with`.

        `judgements` of `History.judge` are made when the command has ended. Raises ScheduleError, ConfigError, and the
        errors of `AsyncCluster`.
        """
        check_schedule(schedule)
        for text in judgements:
            read_judgement(text)
        self._judgements = tuple(judgements)
        self._begin_with = begin_with
        self._command = tuple(command)
        self._schedule = schedule
        self._freezes = any(KINDS[each.kind].is_of_workers for each in schedule.actions)
        self._kafka = AsyncCluster(
            schedule.brokers, topics=topics, configs={**CONFIGS, **(configs or {})}, seed=schedule.seed, control=True
        )
        if schedule.latency_ms:
            draw = random.Random(f"{schedule.seed}/links").randint
            self._kafka.latency_ms = lambda _source, _target: draw(0, schedule.latency_ms)
        self._noted_requests = 0
        self._begin_s: float | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> CommandOutcome:
        """Run the command to its end. Raises OSError if it cannot be started."""
        loop = asyncio.get_running_loop()
        async with self._kafka:
            started_s = loop.time()
            self._timeline = timeline = Timeline(lambda: loop.time() - started_s)
            process = self._start()
            timeline.note(COMMAND, f"starts: {' '.join(self._command)}")
            self._programs = CommandFaults(process)
            self._network = SocketNetwork(self._kafka)
            cluster = ClusterFaults(self._kafka, self._network)
            self._faults = Faults(loop, cluster, timeline, self._programs)
            self._kafka.keep_requests(1)
            self._history = History(self._kafka)
            self._kafka.nodes.requests.on_answer = self._on_answer
            self._tasks.append(loop.create_task(self._watch_leaders()))
            try:
                with _signals_passed_on(loop, self._on_signal):
                    code = await asyncio.to_thread(process.wait)
            finally:
                self._kafka.nodes.requests.on_answer = None
                for task in self._tasks:
                    task.cancel()
            elapsed_s = loop.time() - started_s
            code = shell_exit_code(code)
            timeline.note(COMMAND, f"exits with code {code}")
            broken = [text async for text in self._judge()]
        begin_s, lasts_s = self._begin_s, self._schedule.duration_ms / 1000
        until_s = None if begin_s is None else begin_s + lasts_s
        moments = tuple(timeline.moments)
        return CommandOutcome(
            self._command, self._schedule, code, elapsed_s, until_s, moments, self._begin_with, tuple(broken)
        )

    async def _judge(self) -> AsyncIterator[str]:
        """Yield the texts of failed judgements, without waiting, because the command has ended."""
        for text in self._judgements:
            try:
                await self._history.judge(text, within_s=0)
            except InvariantError as error:
                yield str(error)
            except (ApiError, WrongStateError, LookupError) as error:
                yield f"{text} cannot be judged: {error}"

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            SERVERS_VARIABLE: self._kafka.bootstrap_servers,
            CONTROL_VARIABLE: str(self._kafka.control_url),
        }
        # To be stopped with its child processes, the command needs a process group of its own, which may not
        # # read from the terminal.
        return subprocess.Popen(  # noqa: S603 - the user's command
            self._command,
            env=environment,
            process_group=0 if self._freezes else None,
            stdin=subprocess.DEVNULL if self._freezes else None,
        )

    def _on_answer(self, request: RequestStatus) -> None:
        self._network.traffic += 1
        if self._judgements:
            self._history.take(request)
        if self._begin_s is None and self._begin_with in (request.client_id or ""):
            self._begin(request.client_id)
        if request.errors and self._noted_requests < MAX_REQUESTS:
            self._noted_requests += 1
            self._timeline.note(request.client_id or "client", failed_request_text(request))

    def _begin(self, client_id: str | None) -> None:
        loop = asyncio.get_running_loop()
        self._timeline.note(FAULT, f"the schedule begins: {client_id or 'a client'} has connected")
        self._begin_s = self._timeline.now_s()
        self._faults.schedule(self._schedule.actions)
        self._tasks.append(loop.create_task(self._note_the_end()))

    async def _note_the_end(self) -> None:
        await asyncio.sleep(self._schedule.duration_ms / 1000)
        try:
            await self._kafka.wait_until(lambda: self._faults.are_over, RECOVERY_S)
        except ClusterTimeoutError:
            self._timeline.note(FAULT, f"all over, but not all replicas in sync after {RECOVERY_S} s")
        else:
            self._timeline.note(FAULT, "all over, all replicas in sync")

    async def _watch_leaders(self) -> None:
        leaders, changes = Leaders(self._kafka, self._timeline), self._kafka.changes
        count = changes.count
        while True:
            count = await changes.after(count)
            leaders.look()

    def _on_signal(self, number: int, *, is_known: bool) -> None:
        """Pass a signal on to the command, which decides when to end; `is_known` if it has received it already."""
        self._timeline.note(COMMAND, f"gets {signal.Signals(number).name}")
        self._programs.thaw()
        if self._freezes or not is_known:
            self._programs.send_signal(number)


@contextmanager
def _signals_passed_on(loop: asyncio.AbstractEventLoop, on_signal: Callable[..., None]) -> Iterator[None]:
    """Call `on_signal` for SIGINT and SIGTERM in the `with` block; a first ctrl-C reaches the whole process group."""
    is_known = _is_in_the_foreground()

    def interrupted() -> None:
        nonlocal is_known
        was_known, is_known = is_known, False
        on_signal(signal.SIGINT, is_known=was_known)

    handled = []
    with suppress(NotImplementedError):  # Windows
        for number, handler in (
            (signal.SIGINT, interrupted),
            (signal.SIGTERM, lambda: on_signal(signal.SIGTERM, is_known=False)),
        ):
            loop.add_signal_handler(number, handler)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _is_in_the_foreground() -> bool:
    """Return whether ctrl-C in a terminal reaches this process, and so the command in its group."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except (AttributeError, OSError):
        return False
