"""A program in virtual time: one start of a command, as a callback of the virtual loop."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from broker_sim.runtime.virtual.core.errors import EscapeError, VirtualRunError
from broker_sim.runtime.virtual.programs.compiling import library
from broker_sim.runtime.virtual.programs.connection import Connection, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.runtime.virtual.network.ports import BoundPort

NEVER: Final = 2**63 - 1
_MESSAGE: Final = struct.Struct("<IIqq")
_ANSWER: Final = struct.Struct("<IIIIqqq")
_RESULT: Final = struct.Struct("<Iiq")
_CONNECT, _IDLE, _HELLO, _BYE, _RESOLVE, _REFUSE, _REPORT, _BIND, _LISTEN = range(1, 10)
_GO, _DESCRIBE = 1, 2
_FILE: Final = struct.Struct("i")
_FILE_BYTES: Final = socket.CMSG_SPACE(_FILE.size)
_MESSAGE_BYTES: Final = 65_536
_MOST_RESULTS: Final = 256
_ADDR_NO_RANDOMIZE: Final = 0x0040000
_ANY_PERSONALITY: Final = 0xFFFFFFFF
WATCHED_EVERY_S: Final = 1.0
"""Real time between two looks at a program that runs on."""
HANGS_AFTER_S: Final = 20.0
"""Processor time of a program between two waits after which it counts as hanging."""
STANDS_STILL_AFTER_S: Final = 120.0
"""Real time of a program between two waits after which it counts as hanging, whatever it computes."""
MOST_ALONE_NS: Final = 3_600 * 10**9
"""Virtual time that a program may pass without asking the loop."""
ORDER_BITS: Final = 63
FIRST_ACCEPTED: Final = 1 << 30
"""Number of the first connection that others make; the program numbers its own from 1 on."""
OUTPUT_TOLD: Final = 4_000
"""Maximum number of last characters of its output that an error of a program shows."""
_SIGTERM: Final = int(signal.SIGTERM)
_libc = ctypes.CDLL(None, use_errno=True)
USUAL_ENVIRONMENT: Final = {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
"""Variables that let Python programs tell the line where they hang, and print at once."""


class ProgramHangsError(VirtualRunError):
    """A program computes without a wait, or waits for what is outside of virtual time."""


class Program:
    """One start of a command. Thread rule: the loop's thread.

    `name` is unique in the loop. It belongs to `process`, or to a new process of its name. Chance inside follows from
    the seed of the loop, the name, and the number of the start. `order` other than 0 chooses which of its ready
    threads runs next; None is 0, or a number that the seed draws where the loop's tasks do not run first in, first
    out. `on_output(line)` is called for each line printed.
    Raises NoVirtualProgramsError, and OSError if the command cannot be started.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        process: Process | None = None,
        start: int = 1,
        order: int | None = None,
        on_output: Callable[[str], object] | None = None,
    ) -> None:
        self.name = name
        self.exit_code: int | None = None
        """Exit code, negative for the number of the signal that ended it; None while it runs."""
        self.output = bytearray()
        """Its output so far on stdout and stderr."""
        self._loop = loop
        self._on_output = on_output
        self._lines_told = 0
        self._connections: dict[int, Connection] = {}
        self._numbers = count(FIRST_ACCEPTED)
        self._ports: dict[int, BoundPort] = {}
        self._servers: list[Server] = []
        self._results: list[tuple[int, int, int]] = []
        self._signal = 0
        self._calls_left = 0
        self.is_killed = False
        """Whether `kill` has ended it, or is about to."""
        self._is_running = False
        self._is_new = True
        self._ended: asyncio.Future[int] = loop.create_future()
        self._ready: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._output_file = os.memfd_create(f"output of {name}")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(WATCHED_EVERY_S)
        with theirs:
            self._popen = self._start(command, theirs, dict(env or {}), cwd, f"{loop.seed}/{name}/{start}", order)
        self.process = loop.process(name) if process is None else process
        self._is_own_process = process is None
        loop.trace.record("program", name, "starts")
        loop.core.programs.append(self)
        self.process.call(self.on_arrival)

    def _start(
        self,
        command: Sequence[str],
        control: socket.socket,
        env: dict[str, str],
        cwd: str | Path | None,
        seed: str,
        order: int | None,
    ) -> subprocess.Popen[bytes]:
        if order is None and self._loop.task_order is not None:
            order = self._loop.stream(f"threads of {seed}").getrandbits(ORDER_BITS)
        own = {"LD_PRELOAD": str(library()), "VT_FD": str(control.fileno()), "VT_SEED": seed}
        if order:
            own["VT_ORDER"] = str(order)
        words = [sys.executable if command[0] == "python" else str(command[0]), *map(str, command[1:])]
        before = _libc.personality(_ANY_PERSONALITY)
        # Addresses become chance in some libraries: librdkafka seeds its jitter with them.
        _libc.personality(before | _ADDR_NO_RANDOMIZE)
        try:
            return subprocess.Popen(  # noqa: S603 - it is what the user has given
                words,
                env={**os.environ, **USUAL_ENVIRONMENT, **env, **own},
                pass_fds=[control.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._output_file,
                stderr=self._output_file,
                cwd=cwd,
            )
        finally:
            _libc.personality(before)

    def __repr__(self) -> str:
        return f"<Program {self.name!r}: {'runs' if self.exit_code is None else f'exit code {self.exit_code}'}>"

    # -- what tests do with it --------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Its output so far on stdout and stderr, as text."""
        return self.output.decode(errors="replace")

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int = _SIGTERM) -> None:
        """Send a signal: its main thread takes it at this very time. SIGKILL, SIGSTOP and SIGCONT act on all of it."""
        if self.exit_code is not None:
            return
        if number == signal.SIGKILL:
            self.kill()
        elif number == signal.SIGSTOP:
            self.process.freeze()
        elif number == signal.SIGCONT:
            self.process.resume()
        else:
            self._signal = number
            self.process.call(self.on_arrival)

    def kill_at_call(self, calls: int) -> None:
        """End it as SIGKILL does at its `calls`th call from its next step on: between two statements, not in a wait.

        Calls that read a clock, read, write, open, close or send count. `wait` tells when it has ended.
        """
        if self.exit_code is None:
            self.is_killed = True
            self._calls_left = calls

    def kill(self) -> None:
        """End it at once, as SIGKILL does; its host closes its connections. Idempotent."""
        if self.exit_code is None:
            self.is_killed = True
            os.kill(self._popen.pid, signal.SIGKILL)
            self._end("killed")
            if self._is_own_process:
                self.process.kill()

    # -- what connections tell --------------------------------------------------------------------

    def on_connected(self, number: int, error: int) -> None:
        """Take the result of a connect, an errno or 0."""
        self._results.append((number, error, 0))
        self.on_arrival()

    def next_number(self) -> int:
        """Return the number of a connection that others have made."""
        return next(self._numbers)

    def on_accepted(self, number: int, connection: Connection) -> None:
        """Take a connection that others have made."""
        self._connections[number] = connection

    def on_arrival(self) -> None:
        """Run soon: there is something to read, or room to write."""
        if self._ready is None and self.exit_code is None and not self._is_running:
            self._ready = self._loop.call_soon(self._run)

    # -- running ----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Let it run until all its threads wait."""
        if self.exit_code is not None or self.process.is_dead:
            return
        for handle in (self._ready, self._timer):
            if handle is not None:
                handle.cancel()
        self._ready = self._timer = None
        self._is_running = True
        try:
            if self._is_new:
                self._is_new = False
                self._receive()  # its greeting
            self._go()
            deadline_ns = self._receive()
        finally:
            self._is_running = False
        has_sent = [connection.drain() for connection in self._connections.values()]
        self._connections = {key: one for key, one in self._connections.items() if not one.is_closed}
        self._close_servers()
        self._read_output()
        if deadline_ns is None:
            self._end("killed" if self.is_killed else "exits")
            if self._is_own_process:
                self._loop.call_soon(self.process.kill, context=self._loop.processes.outside)
        elif any(has_sent):
            self.on_arrival()  # it may wait for room to write, and has it now
        elif deadline_ns < NEVER:
            self._timer = self._loop.call_at_ns(deadline_ns, self._run)

    def _go(self) -> None:
        due_ns, limit_ns = self._loop.next_due_ns(), self._loop.time_limit.limit_ns
        horizon_ns = min(NEVER if due_ns is None else due_ns, self._loop.clock.now_ns + MOST_ALONE_NS)
        if limit_ns < horizon_ns:
            horizon_ns = int(limit_ns)
        if any(connection.has_backlog for connection in self._connections.values()):
            horizon_ns = 0  # there may be room for more after each of its waits
        clock = self._loop.clock
        wall_start_ns = clock.wall_clock_ns() - clock.now_ns + self.process.clock_offset_ns
        results, self._results = self._results[:_MOST_RESULTS], self._results[_MOST_RESULTS:]
        number, self._signal = self._signal, 0
        calls_left, self._calls_left = self._calls_left, 0
        self._answer(clock.now_ns, horizon_ns, wall_start_ns, number, results, calls_left)

    def _answer(
        self,
        now_ns: int,
        horizon_ns: int,
        wall_start_ns: int,
        number: int,
        results: Sequence[tuple[int, int, int]],
        calls_left: int = 0,
    ) -> None:
        head = _ANSWER.pack(_GO, number, len(results), calls_left, now_ns, horizon_ns, wall_start_ns)
        self._send(head + b"".join(_RESULT.pack(*result) for result in results))

    def _send(self, data: bytes) -> None:
        with suppress(OSError):  # it has ended; the next receive tells
            self._control.send(data)

    def _receive(self) -> int | None:
        """Take messages until it waits; return its deadline, None if it has ended."""
        while (message := self._next_message()) is not None:
            (kind, number, first, second), text, fds = message
            if kind in {_IDLE, _BYE}:
                self._move_to_ns(first)
            if kind == _IDLE:
                return second
            if kind == _HELLO:
                return NEVER
            if kind == _CONNECT:
                self._connect(number, first, second, fds[0])
            elif kind == _RESOLVE:
                self._resolve(text.decode())
            elif kind == _BIND:
                self._bind(number)
            elif kind == _LISTEN:
                self._listen(number, fds[0])
            elif kind == _REFUSE:
                self._refuse(text.decode())
        return None

    def _next_message(self) -> tuple[tuple[int, int, int, int], bytes, list[int]] | None:
        """Return the next message, its text and its files; None if the program has ended."""
        cpu_s, real_s = -1.0, 0.0
        while True:
            try:
                data, ancillary, _, _ = self._control.recvmsg(_MESSAGE_BYTES, _FILE_BYTES)
            except TimeoutError:
                cpu_s = self._cpu_s() if cpu_s < 0 else cpu_s
                real_s += WATCHED_EVERY_S
                self._check_progress(self._cpu_s() - cpu_s, real_s)
            except ConnectionResetError:
                return None
            else:
                break
        if not data:
            return None
        fds = [_FILE.unpack_from(content)[0] for _, _, content in ancillary]
        return _MESSAGE.unpack_from(data), data[_MESSAGE.size :], fds

    def _move_to_ns(self, now_ns: int) -> None:
        """Take over the time to which it has moved by itself: nothing was due before."""
        if now_ns > self._loop.clock.now_ns:
            self._loop.core.queue.move_to_ns(now_ns)

    def _connect(self, number: int, target: int, filler_bytes: int, fd: int) -> None:
        host, port = socket.inet_ntoa(struct.pack(">I", target >> 16)), target & 0xFFFF
        if host.startswith("127.") and self._loop.tcp.ports.listener(self._address(), port) is not None:
            host = self._address()  # another loopback than that of the brokers
        connection = self._connections[number] = Connection(self, number, socket.socket(fileno=fd), filler_bytes)
        self._loop.create_task(connection.connect(self._loop, host, port))

    def _address(self) -> str:
        """Return the address of its host, at which it listens."""
        return self._loop.network.hosts.add(self.process.host)

    def _bind(self, port: int) -> None:
        """Take a port of its host; one that it has bound before, and does not listen on, is its own."""
        self._close_servers()
        bound, error = self._ports.pop(port, None), 0
        if bound is not None:
            bound.close()
        try:
            bound = self._loop.tcp.bind(self.process.host, port)
        except OSError as taken:
            error = taken.errno or errno.EADDRINUSE
        else:
            port = bound.getsockname()[1]
            self._ports[port] = bound
        self._answer(0, 0, 0, 0, [(0, error, port)])

    def _close_servers(self) -> None:
        """Give back the ports that the program has closed."""
        self._servers = [server for server in self._servers if not server.is_over()]

    def _listen(self, port: int, fd: int) -> None:
        server = Server(self, socket.socket(fileno=fd), self._ports.pop(port))
        self._servers.append(server)
        server.start(self._loop)

    def _resolve(self, name: str) -> None:
        try:
            address, error = self._loop.network.hosts.resolve(name), 0
        except OSError:
            address, error = "0.0.0.0", 1  # noqa: S104 - no address
        (value,) = struct.unpack(">I", socket.inet_aton(address))
        self._answer(0, 0, 0, 0, [(0, error, value)])

    # -- what goes wrong --------------------------------------------------------------------------

    def _cpu_s(self) -> float:
        try:
            fields = Path(f"/proc/{self._popen.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _check_progress(self, cpu_s: float, real_s: float) -> None:
        """Give up on a program that hangs. Its processor time counts: a busy machine makes it wait."""
        if cpu_s < HANGS_AFTER_S and real_s < STANDS_STILL_AFTER_S:
            return
        what = "computes for" if cpu_s >= HANGS_AFTER_S else "waits outside of virtual time for"
        raise self._failure(ProgramHangsError, f"{what} {max(cpu_s, real_s):.0f} s without a wait in virtual time")

    def _refuse(self, text: str) -> None:
        raise self._failure(EscapeError, text, aborts_itself=True)

    def _failure(
        self, kind: Callable[[str], VirtualRunError], text: str, *, aborts_itself: bool = False
    ) -> VirtualRunError:
        """End it with SIGABRT, on which it prints its stack; return the error that fails the run."""
        if not aborts_itself:  # a second SIGABRT would cut the stack off that the first one prints
            self._popen.send_signal(signal.SIGABRT)
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
        self._read_output()
        self._end("fails")
        return kind(f"program {self.name!r}: {text}. Its last output:\n{self.text[-OUTPUT_TOLD:]}")

    def describe(self) -> str:
        """Return what each of its threads waits for, a line for each."""
        if self.exit_code is not None or self._is_new or self._is_running:
            return ""
        self._send(_ANSWER.pack(_DESCRIBE, 0, 0, 0, 0, 0, 0))
        message = self._next_message()
        return "" if message is None else f"program {self.name!r}:\n{message[1].decode(errors='replace')}"

    # -- the end ----------------------------------------------------------------------------------

    def _read_output(self) -> None:
        while data := os.pread(self._output_file, _MESSAGE_BYTES, len(self.output)):
            self.output += data
        if self._on_output is not None:
            end = self.output.rfind(b"\n") + 1 if self.exit_code is None else len(self.output)
            lines = self.output[self._lines_told : end].decode(errors="replace")
            self._lines_told = max(self._lines_told, end)
            for line in lines.splitlines():
                self._on_output(line)

    def _end(self, how: Literal["exits", "killed", "fails"]) -> None:
        self.exit_code = self._popen.wait()
        self._read_output()
        os.close(self._output_file)
        self._control.close()
        for connection in self._connections.values():
            connection.drain()
            connection.close()
        self._connections.clear()
        for server in self._servers:
            server.close()
        for port in self._ports.values():
            port.close()
        self._loop.core.programs.remove(self)
        self._loop.trace.record("program", self.name, how, self.exit_code)
        if not self._ended.done():
            self._ended.set_result(self.exit_code)
