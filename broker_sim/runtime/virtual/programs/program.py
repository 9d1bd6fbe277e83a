"""A program in virtual time: a command and all processes that it starts."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import socket
import struct
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from broker_sim.runtime.virtual.programs.connection import Connection, Server
from broker_sim.runtime.virtual.programs.os_process import (
    HAS_RUN,
    MAY_WAIT_FOR_ROOM,
    MESSAGE_BYTES,
    NUMBER_BITS,
    OsProcess,
    of_group,
)
from broker_sim.runtime.virtual.programs.starting import ForkServer, script_server, start_process
from broker_sim.runtime.virtual.task_order import SeededOrder

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from broker_sim.runtime.virtual.core.errors import VirtualRunError
    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.runtime.virtual.network.ports import BoundPort
    from broker_sim.runtime.virtual.programs.starting import Copy

ORDER_BITS: Final = 63
FIRST_ACCEPTED: Final = 1 << 31
"""Number of the first incoming connection; the program's own have smaller numbers."""
OUTPUT_TOLD: Final = 4_000
"""Number of characters from the end of a program's output that its errors show."""
NOT_OURS: Final = 1000
"""Result of `kill` for a process that belongs to no program: the kernel then sends the signal."""
_SIGTERM: Final = int(signal.SIGTERM)


class Program:
    """A running command: an OS process, and the processes that it starts. Thread rule: the loop's thread.

    They share a host, are frozen together, and none outlives the first process. A Python script starts as a copy of a
    process that has imported its packages, as other commands do if a fork server is given in place of them.

    `name` is unique in the loop. The program belongs to `process`, or to a new process of that name. Its randomness
    follows from the loop's seed, the name, and the number of the start. An `order` other than 0 varies which of its
    ready threads runs next, and whether one lets others run before it locks a mutex; None is 0, or a number drawn from
    the seed if the order of the loop's tasks is seeded.
    `on_output(line)` is called for each line printed.
    Raises NoVirtualProgramsError, and OSError if the command cannot be started.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        name: str,
        command: Sequence[str] | ForkServer,
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
        """Exit code, or the negative number of the signal that ended it; None while it runs."""
        self.output = bytearray()
        """Its output so far on stdout and stderr."""
        self._loop = loop
        self._on_output = on_output
        self._lines_told = 0
        self._connections: dict[int, Connection] = {}
        self._readable = select.epoll()
        self._numbers = count(FIRST_ACCEPTED)
        self._ports: dict[int, BoundPort] = {}
        self._servers: list[Server] = []
        self.is_killed = False
        """Whether `kill` has been called."""
        self._ended: asyncio.Future[int] = loop.create_future()
        self._output_file = os.memfd_create(f"output of {name}")
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._popen = self._start(command, theirs, env, cwd, f"{loop.seed}/{name}/{start}", order)
        except BaseException:
            control.close()
            os.close(self._output_file)
            raise
        self.process = loop.process(name) if process is None else process
        self._is_own_process = process is None
        loop.trace.record("program", name, "starts")
        loop.core.programs.append(self)
        self._process_numbers = count(1)
        self._root = OsProcess(loop, self, next(self._process_numbers), control, self._popen.pid)
        self._processes = [self._root]
        self._images: list[OsProcess] = []
        self.process.call(self._root.wake)

    def _start(
        self,
        command: Sequence[str] | ForkServer,
        control: socket.socket,
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
        seed: str,
        order: int | None,
    ) -> subprocess.Popen[bytes] | Copy:
        if order is None and isinstance(self._loop.task_order, SeededOrder):
            order = self._loop.stream(f"threads of {seed}").getrandbits(ORDER_BITS)
        server = command if isinstance(command, ForkServer) else script_server(command, env, cwd)
        if server is not None:
            return server.fork(control, seed, order, self._output_file, env, cwd)
        assert not isinstance(command, ForkServer)
        return start_process(command, control, seed, order, self._output_file, env, cwd)

    def __repr__(self) -> str:
        return f"<Program {self.name!r}: {'runs' if self.exit_code is None else f'exit code {self.exit_code}'}>"

    # -- called by tests --------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Its output so far on stdout and stderr, as text."""
        return self.output.decode(errors="replace")

    async def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int = _SIGTERM) -> None:
        """Send a signal to its first process, whose main thread gets it at the current virtual time.

        SIGKILL, SIGSTOP and SIGCONT act on all of its processes.
        """
        if self.exit_code is not None:
            return
        if number == signal.SIGKILL:
            self.kill()
        elif number == signal.SIGSTOP:
            self.process.freeze()
        elif number == signal.SIGCONT:
            self.process.resume()
        else:
            self.process.call(self._root.send_signal, number)

    def kill_at_call(self, calls: int) -> None:
        """Kill it as SIGKILL does, at its `calls`th call from its next step on: between statements, not in a wait.

        Calls of its first process that read a clock, read, write, open, close or send are counted. `wait` returns when
        it has ended.
        """
        if self.exit_code is None:
            self.is_killed = True
            self._root.calls_left = calls

    def kill(self) -> None:
        """Kill it at once, as SIGKILL does; its host closes its connections. Idempotent."""
        if self.exit_code is None:
            self.is_killed = True
            self._end("killed")
            if self._is_own_process:
                self.process.kill()

    # -- called by connections --------------------------------------------------------------------

    def on_connected(self, number: int, error: int) -> None:
        """Receive the result of a connect, an errno or 0."""
        self._images[number >> NUMBER_BITS].on_connected(number, error)

    def next_number(self) -> int:
        """Return the number for an incoming connection."""
        return next(self._numbers)

    def on_opened(self, number: int, connection: Connection) -> None:
        """Take over a connection."""
        self._connections[number] = connection
        self._readable.register(connection, select.EPOLLIN)

    def on_arrival(self) -> None:
        """Run soon: there is data to read, or room to write."""
        for process in self._processes:
            process.wake()

    # -- called by processes ----------------------------------------------------------------------

    @property
    def is_alone(self) -> bool:
        """Whether it has one process only, with no unread data."""
        return len(self._processes) == 1 and not any(each.has_backlog for each in self._connections.values())

    def new_image(self, process: OsProcess) -> int:
        """Return the base of the connection numbers of a new process image, made by exec or fork."""
        self._images.append(process)
        return len(self._images) - 1 << NUMBER_BITS

    def after_step(self, process: OsProcess, flags: int) -> bool:
        """Move the bytes of connections, collect the output, and wake other processes that share resources.

        Returns whether that may have ended a wait of the process, which now may read more or has room to write.
        """
        may_go_on = self._drain(flags)
        self._close_servers()
        self._read_output()
        if flags & HAS_RUN:
            for other in self._processes:
                if other is not process:
                    other.wake()
        return may_go_on

    def _drain(self, flags: int) -> bool:
        readable, may_go_on = {fd for fd, _ in self._readable.poll(0, len(self._connections) + 1)}, False
        for number, connection in list(self._connections.items()):
            if connection.is_closed:
                del self._connections[number]
            elif connection.has_backlog or connection.fileno() in readable:
                has_sent, has_more = connection.drain()
                may_go_on |= has_more or (has_sent and bool(flags & MAY_WAIT_FOR_ROOM))
        return may_go_on

    def add_child(self, parent: OsProcess, pid: int, fd: int) -> None:
        """Add a new child process."""
        child = OsProcess(self._loop, self, next(self._process_numbers), socket.socket(fileno=fd), pid, parent)
        self._loop.trace.record("program", self.name, "starts process", child.number)
        self._processes.append(child)
        child.wake()

    def signal_process(self, sender: OsProcess, pid: int, number: int) -> int:
        """Execute `kill(pid, number)`; return errno, 0, or NOT_OURS."""
        if pid > 0:
            receivers = [each for each in self._processes if each.pid == pid]
        else:
            receivers = of_group(self._processes, -pid if pid else os.getpgid(sender.pid))
        for receiver in receivers if number else ():
            receiver.send_signal(number)
        return 0 if receivers else NOT_OURS

    def on_end(self, process: OsProcess) -> None:
        """Notify the parent of a process's end; the end of the first process ends the program."""
        if process is self._root:
            if self.exit_code is None:
                self._end("killed" if self.is_killed else "exits")
                if self._is_own_process:
                    self._loop.call_soon(self.process.kill, context=self._loop.processes.outside)
            return
        self._processes.remove(process)
        self._loop.trace.record("program", self.name, "ends process", process.number)
        if process.parent is not None:
            process.parent.send_signal(signal.SIGCHLD)

    # -- the network ------------------------------------------------------------------------------

    def connect(self, number: int, target: int, filler_bytes: int, fd: int) -> None:
        """Open a connection; `target` is an IPv4 address followed by a port in the last 16 bits."""
        host, port = socket.inet_ntoa(struct.pack(">I", target >> 16)), target & 0xFFFF
        if host.startswith("127.") and self._loop.tcp.ports.listener(self._address(), port) is not None:
            host = self._address()  # not the brokers' loopback
        connection = Connection(self, number, socket.socket(fileno=fd), filler_bytes)
        self.on_opened(number, connection)
        self._loop.create_task(connection.connect(self._loop, host, port))

    def _address(self) -> str:
        """Return the address of its host, on which it listens."""
        return self._loop.network.hosts.add(self.process.host)

    def bind(self, port: int) -> tuple[int, int]:
        """Bind a port of its host, 0 for a free one; return errno or 0, and the port."""
        self._close_servers()
        try:
            bound = self._loop.tcp.bind(self.process.host, port)
        except OSError as taken:
            return taken.errno or errno.EADDRINUSE, port
        port = bound.getsockname()[1]
        self._ports[port] = bound
        return 0, port

    def serve(self, port: int, fd: int) -> None:
        """Keep our end of a socket that the program has bound to a port."""
        self._servers.append(Server(self, socket.socket(fileno=fd), self._ports.pop(port)))

    def listen(self, port: int) -> None:
        """Accept connections on a port."""
        for server in self._servers:
            if server.port == port:
                server.start(self._loop)

    def _close_servers(self) -> None:
        """Release the ports that the program has closed."""
        self._servers = [server for server in self._servers if not server.is_over()]

    # -- ending -----------------------------------------------------------------------------------

    def on_failure(self, process: OsProcess, kind: Callable[[str], VirtualRunError], text: str) -> VirtualRunError:
        """End the whole program after a failure of a process; return the error that fails the run."""
        self._read_output()
        self._end("fails")
        return kind(f"{self._title(process)}: {text}. Its last output:\n{self.text[-OUTPUT_TOLD:]}")

    def describe(self) -> str:
        """Return what each of its threads waits for, one line each."""
        texts = [(self._title(process), process.describe()) for process in self._processes]
        return "\n".join(f"{title}:\n{text.rstrip()}" for title, text in texts if text)

    def _title(self, process: OsProcess) -> str:
        return f"program {self.name!r}" + (f", process {process.number}" if process is not self._root else "")

    def _read_output(self) -> None:
        while data := os.pread(self._output_file, MESSAGE_BYTES, len(self.output)):
            self.output += data
        if self._on_output is not None:
            end = self.output.rfind(b"\n") + 1 if self.exit_code is None else len(self.output)
            lines = self.output[self._lines_told : end].decode(errors="replace")
            self._lines_told = max(self._lines_told, end)
            for line in lines.splitlines():
                self._on_output(line)

    def _end(self, how: Literal["exits", "killed", "fails"]) -> None:
        for process in (*self._processes[1:], self._root):
            process.kill()
        self.exit_code = self._popen.wait()
        self._read_output()
        os.close(self._output_file)
        for connection in self._connections.values():
            connection.drain()
            connection.close()
        self._connections.clear()
        self._readable.close()
        for server in self._servers:
            server.close()
        for port in self._ports.values():
            port.close()
        self._loop.core.programs.remove(self)
        self._loop.trace.record("program", self.name, how, self.exit_code)
        if not self._ended.done():
            self._ended.set_result(self.exit_code)
