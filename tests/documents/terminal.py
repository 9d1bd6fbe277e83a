"""Types the commands of a page into shells and compares what they print with what the page shows."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import time
from contextlib import suppress

LIMIT_S = 300
END_S = 60
MARK = "\x01ended "
START = """
trap : INT  # ctrl-C is for the command, not for the shell
make() { command make -n -C "$DOCUMENTS_ROOT" "$@" > /dev/null; }
"""
PORT = re.compile(r"\b(?:909[234]|8090)\b")


class MismatchError(AssertionError):
    """A command did something else than its page says."""


# -- comparing -------------------------------------------------------------------------------------


def squeeze(text):
    """Return the lines of an output that are not empty, with runs of blanks and lines as one."""
    lines = (re.sub("─+", "─", " ".join(line.split())) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def matches(shown, printed, varies=""):
    """Whether a command printed what its page shows."""
    pattern = "".join(_line(line, varies) for line in squeeze(shown).splitlines())
    return re.fullmatch(pattern, squeeze(printed), re.MULTILINE) is not None


def _line(line, varies):
    if line == "...":
        return r"(?:.*\n)*?"
    return ".*?".join(_literal(part, varies) for part in line.split("...")) + r"\n"


def _literal(text, varies):
    if not varies:
        return re.escape(text)
    parts, end = [], 0
    for found in re.finditer(varies, text):
        parts += [re.escape(text[end : found.start()]), f"(?:{varies})"]
        end = found.end()
    return "".join([*parts, re.escape(text[end:])])


# -- typing ----------------------------------------------------------------------------------------


class Terminal:
    """A shell; at most one command of it runs."""

    def __init__(self, directory, variables):
        # What a shell starts in the background ignores ctrl-C, and so would all that it starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=directory,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        signal.signal(signal.SIGINT, before)
        self._typed = self._printed = ""
        self.running = None
        """The command that was left running, and what it must print."""
        self._write(START)

    def type(self, command):
        """Start a command."""
        self._typed = command
        self._printed = ""
        self._write(f"{{ {command}\n}} < /dev/null\nprintf '{MARK}%d\\n' $?\n")

    def until_end(self, limit_s):
        """Return what the command has printed and its exit code, when it has ended."""
        ended = re.compile(f"{MARK}(\\d+)\n")
        self._until(ended.search, limit_s)
        found = ended.search(self._printed)
        return self._printed[: found.start()], int(found[1])

    def until_printed(self, shown, varies, limit_s):
        """Wait until the command, which goes on, has printed what is shown."""
        self._until(lambda printed: matches(shown, printed, varies), limit_s)

    def _write(self, text):
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def _until(self, condition, limit_s):
        deadline = time.monotonic() + limit_s
        output = self._process.stdout
        while not condition(self._printed):
            ready, _, _ = select.select([output], [], [], max(deadline - time.monotonic(), 0))
            piece = os.read(output.fileno(), 65536) if ready else b""
            if not piece:
                said = f"after {limit_s} s there is only:\n{self._printed}"
                raise MismatchError(f"{self._typed}\n{said}")
            self._printed += piece.decode()

    def interrupt(self):
        """Press ctrl-C; returns the exit code of the command."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self.until_end(END_S)[1]

    def close(self):
        """End the shell and all that it has started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S if number == signal.SIGTERM else None)
        self._process.stdin.close()
        self._process.stdout.close()


class Session:
    """All terminals of a page, in one directory."""

    def __init__(self, directory, variables, limit_s):
        self._directory = directory
        self._variables = variables
        self._limit_s = limit_s
        self._terminals = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._interrupt_all()
        finally:
            for terminal in self._terminals.values():
                terminal.close()

    def _interrupt_all(self):
        for terminal in self._terminals.values():
            if terminal.running is not None:
                command, block = terminal.running
                self._check(block, command, "", "", terminal.interrupt())

    def run(self, block, commands):
        """Type the commands of a block. Raises MismatchError."""
        terminal = self._terminal(block.words.get("terminal", ""))
        if terminal.running is not None:
            command, left = terminal.running
            terminal.running = None
            self._check(left, command, command.output, *terminal.until_end(self._limit_s))
        for number, command in enumerate(commands, 1):
            is_last = number == len(commands)
            if is_last and "stays" in block.words:
                terminal.type(command.text)
                if command.output:
                    terminal.until_printed(command.output, block.varies, self._limit_s)
                terminal.running = (command, block)
            else:
                self._type(terminal, block, command, fails=is_last and "fails" in block.words)

    def _type(self, terminal, block, command, *, fails):
        deadline = time.monotonic() + self._limit_s
        while True:
            terminal.type(command.text)
            printed, code = terminal.until_end(self._limit_s)
            if "repeat" not in block.words or time.monotonic() > deadline:
                break
            if matches(command.output, printed, block.varies):
                break
        self._check(block, command, command.output, printed, code, fails=fails)

    def _check(self, block, command, shown, printed, code, *, fails=False):
        if (code != 0) != fails:
            raise MismatchError(f"{block.place}: exit code {code} of {command.text}\n{printed}")
        if not matches(shown, printed, block.varies):
            raise MismatchError(f"{block.place}: {command.text}\nshown:\n{shown}\nprinted:\n{printed}")

    def _terminal(self, name):
        if name not in self._terminals:
            self._terminals[name] = Terminal(self._directory, self._variables)
        return self._terminals[name]


# -- ports -----------------------------------------------------------------------------------------


def free_ports():
    """Return a port that is free for each that pages name; of as many digits, for tables."""
    first = 2000 + os.getpid() % 600 * 10
    for base in [*range(first, 8000, 10), *range(2000, first, 10)]:
        if all(map(_is_free, range(base + 2, base + 6))):
            names = {9092: base + 2, 9093: base + 3, 9094: base + 4, 8090: base + 5}
            return {str(named): str(port) for named, port in names.items()}
    raise MismatchError("no four ports in a row are free")


def with_ports(text, ports):
    """Return the text with the ports that pages name replaced."""
    return PORT.sub(lambda found: ports[found[0]], text)


def _is_free(port):
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
