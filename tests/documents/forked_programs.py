"""Runs programs that it is given, each in a process of its own that has the simulator imported already.

`python forked_programs.py` reads them from stdin, a line of JSON each: `text`, `directory`, and the files
`stdout` and `stderr` for what it prints. It answers with a line that is the exit code.
"""

import json
import os
import subprocess
import sys
from select import select
from types import ModuleType, SimpleNamespace

IMPORTED = "broker_sim.cluster.cluster"
"""Takes most of the time of a short program."""


class ForkedPrograms:
    """Starts programs one after the other; a context manager."""

    def __init__(self, options, variables, directory, limit_s):
        self._files = {name: directory / name for name in ("stdout", "stderr")}
        self._limit_s = limit_s
        self._process = subprocess.Popen(
            [sys.executable, *options, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            text=True,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(self._limit_s)
        self._process.stdout.close()

    def run(self, text, directory):
        """Run a program in a directory; returns its `returncode`, `stdout` and `stderr`."""
        files = {name: str(path) for name, path in self._files.items()}
        request = {"text": text, "directory": str(directory), **files}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answers, _, _ = select([self._process.stdout], [], [], self._limit_s)
        if not answers:
            os.killpg(self._process.pid, 9)
        code = self._process.stdout.readline()
        printed = {name: path.read_text("utf-8") for name, path in self._files.items()}
        assert code, f"it did not end in {self._limit_s} s:\n{printed['stderr']}"
        return SimpleNamespace(returncode=int(code), **printed)


def _next_program():
    """Return what the process is to run: the first process forks for each, and has none itself."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def _become(program):
    """Make this the process of a program; returns its module."""
    os.chdir(program["directory"])
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(program[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["-c"]
    sys.orig_argv = [*sys.orig_argv[:-1], "-c", program["text"]]  # some start themselves anew
    module = sys.modules["__main__"] = ModuleType("__main__")
    return module


if __name__ == "__main__":
    __import__(IMPORTED)
    if (found := _next_program()) is not None:
        exec(compile(found["text"], "<string>", "exec"), vars(_become(found)))
