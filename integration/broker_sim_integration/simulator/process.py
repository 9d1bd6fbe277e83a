"""`broker-sim run` as a process that ends with this one, however this one ends."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from broker_sim_purgatory.clock import SystemClock

from broker_sim.control.client import ControlClient
from broker_sim_integration.simulator.errors import SimulatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

START_TIMEOUT_MS = 60_000
STOP_TIMEOUT_S = 10
READ_BYTES = 4096
LOG_LINES = 3
LOG_BYTES = 4096
ON_DISK = "log.dir"
"""The configuration that makes the simulator store its data on disk; a real broker has `log.dirs`."""


class SimulatorProcess:
    """A simulated cluster in a process of its own; a context manager.

    `command` takes the arguments of `broker-sim run`. The process stops when its stdin is closed, which
    the operating system does when this process ends, and it is in a session of its own, so that a
    ctrl-C reaches the comparison first. Its stderr is stored for error messages. With the configuration
    `log.dir` its data is in a directory of its own, which is removed with the process.
    """

    def __init__(self, command: Sequence[str], *, brokers: int, configs: Mapping[str, str]) -> None:
        options = [f"--brokers={brokers}", "--until-stdin-closes"]
        options += [f"--config={key}={value}" for key, value in configs.items() if key != ON_DISK]
        self._data: tempfile.TemporaryDirectory[str] | None = None
        if ON_DISK in configs:
            self._data = tempfile.TemporaryDirectory(prefix="broker-sim-data-")
            options.append(f"--data-dir={self._data.name}")
        self._command = [*command, *options]
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process: subprocess.Popen[bytes] | None = None

    # -- open and close ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
            )
        except OSError as error:
            raise SimulatorError(
                f"cannot start {self._command[0]} ({error.strerror}); give another --simulator"
            ) from error
        line = self._first_line(self._process)
        try:
            ready: dict[str, Any] = json.loads(line)
            self.bootstrap_servers: str = ready["bootstrap_servers"]
            self.build: str = ready["build"]
            """Whether its purgatory is native or pure."""
            self.pid: int = ready["pid"]
            self.control = ControlClient(ready["control"])
        except (ValueError, KeyError, TypeError) as error:
            raise SimulatorError(
                f"{self._command[0]} is not a broker-sim: its first line is {line!r}{self._last_words()}"
            ) from error

    def _first_line(self, process: subprocess.Popen[bytes]) -> str:
        """Return the line that it prints when it is ready; raise `SimulatorError` if it does not become ready."""
        assert process.stdout is not None
        line = b""
        clock = SystemClock()
        deadline_ms = clock.deadline_ms(START_TIMEOUT_MS)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(clock.seconds_until(deadline_ms)):
                    raise SimulatorError(
                        f"the simulator is not ready after {START_TIMEOUT_MS // 1000} s{self._last_words()}"
                    )
                read = os.read(process.stdout.fileno(), READ_BYTES)
                if not read:
                    process.wait(STOP_TIMEOUT_S)
                    raise SimulatorError(self.how_it_ended())
                line += read
        return line.decode(errors="replace").strip()

    def _stop(self) -> None:
        process = self._process
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                process.stdout.close()
        self._log.close()
        if self._data is not None:
            self._data.cleanup()

    def log_directory(self, broker: int) -> Path:
        """Return a broker's log directory. Raise `SimulatorError` without data on disk."""
        if self._data is None:
            raise SimulatorError(f"the simulator keeps its data in memory; configure {ON_DISK}")
        return Path(self._data.name) / f"broker-{broker}"

    # -- its output ------------------------------------------------------------------------------

    def how_it_ended(self) -> str | None:
        """Return one line if the process has ended by itself: its exit code and the end of its log."""
        assert self._process is not None
        code = self._process.poll()
        if code is None:
            return None
        end = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return f"the simulator ended by itself ({end}){self._last_words()}"

    @contextmanager
    def explain(self, *others: type[Exception]) -> Iterator[None]:
        """Raise any error inside the context as a `SimulatorError` with the end of the process's log.

        Errors of the classes `others` have another cause, and are raised as they are.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, (SimulatorError, *others)):
                raise
            ended = self.how_it_ended()
            text = f"the simulator failed: {type(error).__name__}: {error}"
            raise SimulatorError(ended or f"{text}{self._last_words()}") from error

    def _last_words(self) -> str:
        """Return the last lines of its log on one line, with an introduction."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        lines = self._log.read().decode(errors="replace").splitlines()
        words = [line.strip() for line in lines if line.strip()][-LOG_LINES:]
        return f"; its log ends: {' | '.join(words)}" if words else "; it logged nothing"
