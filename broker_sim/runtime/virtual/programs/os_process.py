"""An OS process that takes part in virtual time, as a callback of the virtual loop."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from broker_sim.runtime.virtual.core.errors import EscapeError, VirtualRunError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.loop import VirtualEventLoop

NEVER: Final = 2**63 - 1
MESSAGE: Final = struct.Struct("<IIqq")
ANSWER: Final = struct.Struct("<IIIIqqq")
_RESULT: Final = struct.Struct("<Iiq")
_CONNECT, _IDLE, HELLO, _BYE, _RESOLVE, _REFUSE, _REPORT, _BIND, _SERVER, _LISTEN, _CHILD, _SIGNAL = range(1, 13)
SERVES, FORKED, ENDED = range(13, 16)
_QUESTIONS: Final = {_RESOLVE, _BIND, _CHILD, _SIGNAL}
GO, _DESCRIBE, FORK, WAIT = range(1, 5)
HAS_RUN, MAY_WAIT_FOR_ROOM = 1, 2
"""Flags of a step: whether any thread has run, and whether one may wait for room to write."""
_FILE: Final = struct.Struct("i")
_FILE_BYTES: Final = socket.CMSG_SPACE(_FILE.size)
MESSAGE_BYTES: Final = 65_536
_MAX_RESULTS: Final = 256
WATCHED_EVERY_S: Final = 1.0
"""Real time between two checks of a running program."""
HANGS_AFTER_S: Final = 20.0
"""CPU time between two waits after which a program counts as hanging."""
STANDS_STILL_AFTER_S: Final = 120.0
"""Real time for which all threads sleep between two waits after which a program counts as hanging."""
MAX_ALONE_NS: Final = 3_600 * 10**9
"""Maximum virtual time by which a program may move without asking the loop."""
END_S: Final = 5.0
"""Maximum real time to wait for the end of a process that exits or was killed."""
NUMBER_BITS: Final = 16
"""Bits of a connection's number that count within one process image."""


class ProgramHangsError(VirtualRunError):
    """A program computes without waiting, or waits for something outside of virtual time."""


class Surroundings(Protocol):
    """The program that a process belongs to."""

    process: Process

    @property
    def is_alone(self) -> bool:
        """Whether no other process of the program and no connection can change anything before the loop does."""

    def new_image(self, process: OsProcess) -> int:
        """Return the base of the connection numbers of a new process image, made by exec or fork."""

    def connect(self, number: int, target: int, filler_bytes: int, fd: int) -> None:
        """Open a connection; `target` is an IPv4 address followed by a port in the last 16 bits."""

    def bind(self, port: int) -> tuple[int, int]:
        """Bind a port of the host, 0 for a free one; return errno or 0, and the port."""

    def serve(self, port: int, fd: int) -> None:
        """Keep our end of a socket that the program has bound to a port."""

    def listen(self, port: int) -> None:
        """Accept connections on a port."""

    def add_child(self, parent: OsProcess, pid: int, fd: int) -> None:
        """Add a new child process."""

    def signal_process(self, sender: OsProcess, pid: int, number: int) -> int:
        """Execute `kill(pid, number)`; return errno, 0, or NOT_OURS."""

    def after_step(self, process: OsProcess, flags: int) -> bool:
        """Collect what a process has sent and printed; return whether that may have ended a wait."""

    def on_end(self, process: OsProcess) -> None:
        """Handle the end of a process."""

    def on_failure(self, process: OsProcess, kind: Callable[[str], VirtualRunError], text: str) -> VirtualRunError:
        """End the whole program after a failure of a process; return the error that fails the run."""


class OsProcess:
    """One process of a program. While it runs, until all its threads wait, the loop is blocked.

    Thread rule: the loop's thread.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        program: Surroundings,
        number: int,
        control: socket.socket,
        pid: int,
        parent: OsProcess | None = None,
    ) -> None:
        control.settimeout(WATCHED_EVERY_S)
        self.number = number
        """1 for the first process of its program, 2 for the next one started, and so on."""
        self.parent = parent
        self.pid = pid
        self.has_ended = False
        self.calls_left = 0
        """Number of calls in its next step after which it is killed; 0 to let it live."""
        self._loop = loop
        self._program = program
        self._control = control
        self._pidfd = os.pidfd_open(pid)
        self._signals: list[int] = []
        self._results: list[tuple[int, int, int]] = []
        self._is_running = False
        self._is_new = True
        self._flags = 0
        self._ready: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- called by the program --------------------------------------------------------------------

    def wake(self) -> None:
        """Let it run soon: there is data to read, room to write, or news of another process."""
        if self._ready is None and not self.has_ended and not self._is_running:
            self._ready = self._loop.call_soon(self._run)

    def on_connected(self, number: int, error: int) -> None:
        """Receive the result of a connect, an errno or 0."""
        self._results.append((number, error, 0))
        self.wake()

    def send_signal(self, number: int) -> None:
        """Deliver a signal to its main thread at the current virtual time; SIGKILL ends it at once."""
        if self.has_ended:
            return
        if number == signal.SIGKILL:
            self.kill()
            self._program.on_end(self)
            return
        self._signals.append(number)
        self.wake()

    def kill(self) -> None:
        """Kill it, and wait until it has ended. Idempotent."""
        if self.has_ended:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Wait until it has ended; it no longer takes part."""
        self.has_ended = True
        for handle in (self._ready, self._timer):
            if handle is not None:
                handle.cancel()
        self._control.close()
        self._await_end()
        os.close(self._pidfd)

    def _await_end(self) -> None:
        """Wait for its end, which is near, so that its parent can be notified."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.poll(END_S * 1000)

    # -- running ----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Let it run until all its threads wait."""
        if self._program.process.is_dead:
            return
        for handle in (self._ready, self._timer):
            if handle is not None:
                handle.cancel()
        self._ready = self._timer = None
        self._is_running, self._flags = True, 0
        try:
            if self._is_new:
                self._is_new = False
                self._next_message()  # its first message
                self._begin_image()
            else:
                self._go()
            deadline_ns = self._receive()
        finally:
            self._is_running = False
        if self.has_ended:
            return
        if deadline_ns is None:
            self.close()  # the system closes its files one by one: all of them are closed at its end
        may_go_on = self._program.after_step(self, HAS_RUN if deadline_ns is None else self._flags)
        if deadline_ns is None:
            self._program.on_end(self)
        elif may_go_on or self._signals:
            self.wake()
        elif deadline_ns < NEVER:
            self._timer = self._loop.call_at_ns(deadline_ns, self._run)

    def _begin_image(self) -> None:
        """Answer the first message of a new process image."""
        if first := self._program.new_image(self):
            self._results = [(0, 0, first)]
        self._go()

    def _go(self) -> None:
        clock = self._loop.clock
        due_ns, limit_ns = self._loop.next_due_ns(), self._loop.time_limit.limit_ns
        horizon_ns = min(NEVER if due_ns is None else due_ns, clock.now_ns + MAX_ALONE_NS)
        if limit_ns < horizon_ns:
            horizon_ns = int(limit_ns)
        if not self._program.is_alone:
            horizon_ns = 0  # it may have sent data to others before each of its waits
        wall_start_ns = clock.wall_clock_ns() - clock.now_ns + self._program.process.clock_offset_ns
        results, self._results = self._results[:_MAX_RESULTS], self._results[_MAX_RESULTS:]
        calls_left, self.calls_left = self.calls_left, 0
        head = ANSWER.pack(GO, self._next_signal(), len(results), calls_left, clock.now_ns, horizon_ns, wall_start_ns)
        self._send(head + b"".join(_RESULT.pack(*result) for result in results))

    def _next_signal(self) -> int:
        return self._signals.pop(0) if self._signals else 0

    def _answer(self, error: int, value: int = 0, own_signal: int = 0) -> None:
        """Answer a question, so that the process runs on."""
        self._send(ANSWER.pack(GO, own_signal, 1, 0, 0, 0, 0) + _RESULT.pack(0, error, value))

    def _send(self, data: bytes) -> None:
        with suppress(OSError):  # it has ended; the next receive reports that
            self._control.send(data)

    def _receive(self) -> int | None:
        """Handle messages until it waits; return its deadline, None if it has ended."""
        while (message := self._next_message()) is not None:
            (kind, number, first, second), text, fds = message
            if kind in {_IDLE, _BYE}:
                self._move_to_ns(first)
            if kind == _IDLE:
                self._flags = number
                return second
            if kind == _REFUSE:
                raise self._failure(EscapeError, text.decode(), aborts_itself=True)
            if kind in _QUESTIONS:
                self._on_question(kind, number, first, text, fds)
            elif kind == HELLO:
                self._begin_image()
            elif kind == _CONNECT:
                self._program.connect(number, first, second, fds[0])
            elif kind == _SERVER:
                self._program.serve(number, fds[0])
            elif kind == _LISTEN:
                self._program.listen(number)
        return None

    def _next_message(self) -> tuple[tuple[int, int, int, int], bytes, list[int]] | None:
        """Return the next message, its text and its file descriptors; None if the process has ended."""
        cpu_s, asleep_s = -1.0, 0.0
        while True:
            try:
                data, ancillary, _, _ = self._control.recvmsg(MESSAGE_BYTES, _FILE_BYTES)
            except TimeoutError:
                cpu_s = self._cpu_s() if cpu_s < 0 else cpu_s
                asleep_s += WATCHED_EVERY_S if self._is_asleep() else 0
                self._check_progress(self._cpu_s() - cpu_s, asleep_s)
            except OSError as error:
                if self.has_ended or isinstance(error, ConnectionResetError):
                    return None
                raise
            else:
                break
        if not data:
            return None
        fds = [_FILE.unpack_from(content)[0] for _, _, content in ancillary]
        return MESSAGE.unpack_from(data), data[MESSAGE.size :], fds

    def _on_question(self, kind: int, number: int, first: int, text: bytes, fds: list[int]) -> None:
        """Answer at once, so that the process runs on."""
        if kind == _RESOLVE:
            self._resolve(text.decode())
        elif kind == _BIND:
            self._answer(*self._program.bind(number))
        elif kind == _CHILD:
            self._program.add_child(self, first, fds[0])
            self._answer(0)
        else:
            error = self._program.signal_process(self, first, number)
            self._answer(error, own_signal=self._next_signal())

    def _move_to_ns(self, now_ns: int) -> None:
        """Adopt the time to which it has moved by itself: nothing was due earlier."""
        if now_ns > self._loop.clock.now_ns:
            self._loop.core.queue.move_to_ns(now_ns)

    def _resolve(self, name: str) -> None:
        try:
            address, error = self._loop.network.hosts.resolve(name), 0
        except OSError:
            address, error = "0.0.0.0", 1  # noqa: S104 - no address
        (value,) = struct.unpack(">I", socket.inet_aton(address))
        self._answer(error, value)

    # -- failures ---------------------------------------------------------------------------------

    def _cpu_s(self) -> float:
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _is_asleep(self) -> bool:
        """Whether all its threads sleep: none is runnable (R) or waits for a disk or a starting child (D)."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/stat")
        with suppress(OSError):
            return all(thread.read_text().rsplit(")", 1)[1].split()[0] not in "RD" for thread in threads)
        return False

    def _check_progress(self, cpu_s: float, asleep_s: float) -> None:
        """Fail if the process hangs; waiting for a CPU on a busy machine does not count."""
        if cpu_s < HANGS_AFTER_S and asleep_s < STANDS_STILL_AFTER_S:
            return
        what = "computes for" if cpu_s >= HANGS_AFTER_S else "waits outside of virtual time for"
        raise self._failure(ProgramHangsError, f"{what} {max(cpu_s, asleep_s):.0f} s without a wait in virtual time")

    def _failure(
        self, kind: Callable[[str], VirtualRunError], text: str, *, aborts_itself: bool = False
    ) -> VirtualRunError:
        """End it with SIGABRT, so that it prints its stack; return the error that fails the run."""
        if not aborts_itself:  # a second SIGABRT would cut off the stack that the first one prints
            signal.pidfd_send_signal(self._pidfd, signal.SIGABRT)
        self._await_end()
        return self._program.on_failure(self, kind, text)

    def describe(self) -> str:
        """Return what each of its threads waits for, one line each."""
        if self.has_ended or self._is_new or self._is_running:
            return ""
        self._send(ANSWER.pack(_DESCRIBE, 0, 0, 0, 0, 0, 0))
        message = self._next_message()
        return "" if message is None else message[1].decode(errors="replace")


def of_group(processes: Iterable[OsProcess], group: int) -> list[OsProcess]:
    """Return the running processes of a process group."""
    members = []
    for process in processes:
        with suppress(OSError):
            if os.getpgid(process.pid) == group:
                members.append(process)
    return members
