"""Starts the OS process of a program: anew, or as a copy of one that has already imported its packages."""

from __future__ import annotations

import ast
import atexit
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from broker_sim_purgatory.clock import DEFAULT_WALL_START_MS

from broker_sim.runtime.virtual.core.clock import NS_PER_MS
from broker_sim.runtime.virtual.programs.compiling import library
from broker_sim.runtime.virtual.programs.os_process import (
    ANSWER,
    ENDED,
    FORK,
    FORKED,
    GO,
    HELLO,
    MESSAGE,
    NEVER,
    SERVES,
    STANDS_STILL_AFTER_S,
    WAIT,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ADDR_NO_RANDOMIZE: Final = 0x0040000
_ANY_PERSONALITY: Final = 0xFFFFFFFF
_REQUEST: Final = struct.Struct("<IiQ1023sx")
USUAL_ENVIRONMENT: Final = {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
"""Variables that make Python programs print the line where they hang, and print without buffering."""
OF_ONE_START: Final = {"VT_SEED", "VT_ORDER", "KAFKA_BOOTSTRAP_SERVERS", "WORKER", "DEPENDENCY_URL"}
"""Variables that a fork server may have from another start: no package reads them when it is imported."""
FORK_HOOK: Final = Path(__file__).parent / "fork_hook"
MAX_SCRIPTS: Final = 8
_libc = ctypes.CDLL(None, use_errno=True)


def start_process(
    command: Sequence[str],
    control: socket.socket,
    seed: str,
    order: int | None,
    output: int,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command with our library and its end of a conversation. Raises NoVirtualProgramsError and OSError."""
    words = [sys.executable if command[0] == "python" else str(command[0]), *map(str, command[1:])]
    before = _libc.personality(_ANY_PERSONALITY)
    # Some libraries use addresses as random numbers: librdkafka seeds its jitter with them.
    _libc.personality(before | _ADDR_NO_RANDOMIZE)
    try:
        return subprocess.Popen(  # noqa: S603 - it is the user's command
            words,
            env={**_environment(env, seed, order), "VT_FD": str(control.fileno())},
            pass_fds=[control.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
        )
    finally:
        _libc.personality(before)


def _environment(env: Mapping[str, str] | None, seed: str, order: int | None) -> dict[str, str]:
    """Return the environment of a program that starts now."""
    own = {"LD_PRELOAD": str(library()), "VT_SEED": seed, **({"VT_ORDER": str(order)} if order else {})}
    return {**os.environ, **USUAL_ENVIRONMENT, **(env or {}), **own}


class ForkServer:
    """A Python command that calls `serve_forks` when it has imported its packages. A copy of it starts in milliseconds.

    Until then it is at virtual time 0, with one seed for all: what it does there is the same for all copies.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str | Path) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(STANDS_STILL_AFTER_S)
        self._output = os.fdopen(os.memfd_create("output of a fork server"), "wb")
        self._lock = Lock()
        self._owner = os.getpid()
        with theirs:
            self._popen = start_process(command, theirs, "fork server", None, self._output.fileno(), env, cwd)
        self.cpu_s = 0.0
        """CPU time of the ended copies, which counts as this process's children's once the server has ended."""
        self.can_fork = self._begin()
        """Whether it can be copied: it has not ended, printed, waited, or started a thread, process or connection."""
        self.copies = 0
        """Number of copies that run; they end with it."""
        if not self.can_fork:
            self.close()

    def _begin(self) -> bool:
        go = ANSWER.pack(GO, 0, 0, 0, 0, NEVER, DEFAULT_WALL_START_MS * NS_PER_MS)
        message = self._receive()
        while message[0] == HELLO:
            message = self._ask(go)
        is_alone = message == (SERVES, 0, 0) and len(list(Path(f"/proc/{self._popen.pid}/task").iterdir())) == 1
        return is_alone and not os.fstat(self._output.fileno()).st_size

    @property
    def has_ended(self) -> bool:
        """Whether it could fork and no longer can: it was killed, or belongs to the parent of this process."""
        return self.can_fork and (self._owner != os.getpid() or self._popen.poll() is not None)

    def _ask(self, message: bytes, *files: int) -> tuple[int, int, int]:
        """Send a message; return the kind and the numbers of the next one; zeros without one."""
        try:
            with suppress(OSError):
                socket.send_fds(self._control, [message], files)
                return self._receive()
        except BaseException:  # such as a signal handler's: the next answer would be taken for that of the next message
            self.close()
            raise
        return 0, 0, 0

    def _receive(self) -> tuple[int, int, int]:
        try:
            kind, _, first, second = MESSAGE.unpack_from(self._control.recv(MESSAGE.size))
        except (OSError, struct.error):
            return 0, 0, 0
        return kind, first, second

    def fork(
        self,
        control: socket.socket,
        seed: str,
        order: int | None,
        output: int,
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
    ) -> Copy:
        """Copy it; the copy has this end of a conversation, output, environment and working directory."""
        request = _REQUEST.pack(FORK, 0, (order or 0) % 2**64, seed.encode())
        variables = (f"{name}={os.fspath(value)}" for name, value in _environment(env, seed, order).items())
        with os.fdopen(os.memfd_create("start of a program"), "wb+") as file, self._lock:
            file.write(os.fsencode("\0".join((str(Path(cwd or ".").absolute()), *variables))))
            file.seek(0)
            kind, pid, _ = self._ask(request, control.fileno(), output, file.fileno())
        if kind != FORKED or pid < 0:
            raise OSError(-pid, f"a program cannot start: {os.strerror(-pid) if pid else 'its fork server has ended'}")
        self.copies += 1
        return Copy(self, pid)

    def wait(self, pid: int) -> int:
        """Wait until a copy has ended; return its exit code, or the negative number of a signal."""
        with self._lock:
            kind, status, cpu_us = self._ask(_REQUEST.pack(WAIT, pid, 0, b""))
        self.copies -= 1
        self.cpu_s += cpu_us / 1e6
        return os.waitstatus_to_exitcode(status) if kind == ENDED else -signal.SIGKILL

    def close(self) -> None:
        """End it, and its copies. Idempotent."""
        if self._owner == os.getpid():
            self._popen.kill()
            self._popen.wait()
        self._control.close()
        self._output.close()


class Copy:
    """The process of a copy."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, or the negative number of a signal."""
        return self._server.wait(self.pid)


class ForkServers:
    """Started fork servers: the `limit` used last, and those with copies that run."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._servers: dict[str, ForkServer] = {}
        atexit.register(self.close)

    def get(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
        state: object = None,
    ) -> ForkServer | None:
        """Return a fork server of the command; None if it cannot be copied.

        It was started in the same folder with the same environment and `state`.
        """
        cwd = Path(cwd or ".").absolute()
        variables = _environment(env, "", None)
        key = repr((command, cwd, state, [(name, variables[name]) for name in sorted({*variables} - OF_ONE_START)]))
        server = self._servers.pop(key, None)
        if server is not None and server.has_ended:
            server.close()
            server = None
        self._servers[key] = server = server or ForkServer(command, env or {}, cwd)
        idle = [key for key, each in self._servers.items() if not each.copies and each is not server]
        for key in idle[: max(0, len(self._servers) - self._limit)]:
            self._servers.pop(key).close()
        return server if server.can_fork else None

    @property
    def cpu_s(self) -> float:
        """CPU time of the ended copies of servers that run."""
        return sum(server.cpu_s for server in self._servers.values())

    def close(self) -> None:
        """End them. Idempotent."""
        while self._servers:
            self._servers.popitem()[1].close()


SCRIPTS: Final = ForkServers(MAX_SCRIPTS)
"""Fork servers of Python scripts."""


def script_server(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | Path | None) -> ForkServer | None:
    """Return a fork server for a Python script; None for other commands, and if it cannot be copied."""
    words = [str(word) for word in command]
    if len(words) < 2 or not Path(words[0]).name.startswith("python") or not words[1].endswith(".py"):
        return None
    script = Path(cwd or ".") / words[1]
    if not script.is_file():
        return None
    usual = {**os.environ, **(env or {})}
    own = {
        "PYTHONHASHSEED": usual.get("PYTHONHASHSEED", "0"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(FORK_HOOK), usual.get("PYTHONPATH")])),
        "VT_IMPORTS": ",".join(first_imports(script)),
    }
    return SCRIPTS.get(words, {**(env or {}), **own}, cwd)


def first_imports(script: Path) -> list[str]:
    """Return the names of the modules with whose import a file of Python begins, up to a module beside it."""
    names: list[str] = []
    try:
        statements = ast.parse(script.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    for number, statement in enumerate(statements):
        if isinstance(statement, ast.Import):
            wanted = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            wanted = [statement.module]
        elif number == 0 and isinstance(statement, ast.Expr):  # the docstring
            continue
        else:
            break
        for name in wanted:
            top = script.parent / name.partition(".")[0]
            if top.is_dir() or top.with_suffix(".py").is_file():
                return names
            names.append(name)
    return names
