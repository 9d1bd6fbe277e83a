"""What can happen to a command of the operating system, as a worker of a run in real time."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from broker_sim.errors import WrongStateError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable


class CommandFaults:
    """The faults of one command, named by their kinds. It leads a process group if it may be frozen."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._is_frozen = False

    def freeze(self, number: int) -> Callable[[], object]:
        """Let the command stand still (SIGSTOP), and all that it has started."""
        if number != 1:
            raise WrongStateError("the command is worker-1, and there is no other")
        if self._process.returncode is not None or self._is_frozen:
            raise WrongStateError("the command does not run")
        try:
            os.killpg(self._process.pid, signal.SIGSTOP)
        except OSError as error:
            raise WrongStateError("the command has just ended") from error
        self._is_frozen = True
        return self.thaw

    def thaw(self) -> None:
        """Let it go on (SIGCONT); does nothing if it runs."""
        if self._is_frozen:
            self._is_frozen = False
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self._process.send_signal(number)
