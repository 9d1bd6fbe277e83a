"""Members of groups as processes: the commands of the kinds of clients, and what a running member tells."""

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from broker_sim_integration.clients.stopwatch import now_ms

MEMBERS = Path(__file__).with_name("members")
PATIENCE_S = 120
BUILD_TIMEOUT_S = 600
QUICK_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
KCAT_CHANGE = re.compile(r"^% Group \S+ rebalanced.*\b(assign|revoke).*?: ?([^:]*)$")
"""`assigned: topic [0]`, `revoked: ...`, or `incremental assignment of 1 partition(s) (...): topic [0]`."""


class Member:
    """A process that is a member of a group. Its events are read by a thread."""

    def __init__(self, command, log):
        self.events = []
        self.owned = set()
        self.revoked = []
        self.records = []
        self.is_kcat = "kcat" in Path(command[0]).name
        self._changed = threading.Condition()
        self._changed_ms = 0.0
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self.is_kcat else self._log,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._take(line.strip())
                self._changed.notify_all()

    def _take(self, line):
        change = KCAT_CHANGE.match(line)
        if change:
            numbers = [int(number) for number in re.findall(r"\[(\d+)\]", change.group(2))]
            event = {"event": f"{change.group(1).removesuffix('e')}ed", "partitions": numbers}
        elif line.startswith("{"):
            event = json.loads(line)
        else:
            return
        self.events.append(event)
        if event["event"] in {"assigned", "revoked"}:
            self._changed_ms = now_ms()
        match event["event"]:
            case "assigned":
                self.owned |= set(event["partitions"])
            case "revoked":
                self.owned -= set(event["partitions"])
                self.revoked += event["partitions"]
            case "record":
                self.records.append((event["partition"], event["offset"]))

    def wait_until_owns(self, number):
        """Wait until the member has so many partitions; returns when it was told so."""
        with self._changed:
            reached = self._changed.wait_for(lambda: len(self.owned) == number, PATIENCE_S)
            assert reached, f"{number} partitions wanted: {self._last_said()}"
            return self._changed_ms

    def wait_until_read(self, number):
        """Wait until the member has read so many records."""
        with self._changed:
            reached = self._changed.wait_for(lambda: len(self.records) >= number, PATIENCE_S)
            assert reached, f"{number} records wanted: {self._last_said()}"

    def _last_said(self):
        """Return the last events and what the member has logged last, for a message."""
        said = Path(self._log.name).read_text(errors="replace")[-2_000:]
        return f"{self.owned} are owned, {len(self.events)} events end with {self.events[-20:]}; {said}"

    def has_told(self, name):
        """Return whether the member has told an event of this name."""
        with self._changed:
            return any(event["event"] == name for event in self.events)

    def kill(self):
        """End it without a word."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def leave(self):
        """Let it leave and end."""
        if self.is_kcat:
            self._process.send_signal(signal.SIGTERM)
        else:
            self._process.stdin.write("leave\n")
            self._process.stdin.flush()
        assert self._process.wait(PATIENCE_S) == 0
        self._reader.join(PATIENCE_S)

    def close(self):
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


class Programs:
    """The commands of the members, made when they are first asked for, by any thread."""

    def __init__(self, find_program, kafka_class_path, build_go, directory):
        self._find_program = find_program
        self._kafka_class_path = kafka_class_path
        self._build_go = build_go
        self._directory = directory
        self._lock = threading.Lock()
        self._made = {}

    def command(self, kind, role):
        """Return the first words of the command of a kind of member in a role."""
        make = {"java": self._java, "franz_go": self._franz_go, "kcat": self._kcat}.get(kind)
        if make is None:
            return [sys.executable, str(MEMBERS / f"{kind}_{role}_member.py")]
        with self._lock:
            if kind not in self._made:
                self._made[kind] = make()
        return [word.format(role=role, Role=role.capitalize()) for word in self._made[kind]]

    def _java(self):
        jars = self._kafka_class_path()
        sources = [str(source) for source in (MEMBERS / "java").glob("*.java")]
        subprocess.run(
            ["javac", "-cp", jars, "-d", str(self._directory), *sources], check=True, timeout=BUILD_TIMEOUT_S
        )
        return ["java", "-Xmx64m", *QUICK_JVM, "-cp", f"{self._directory}:{jars}", "{Role}Member"]

    def _franz_go(self):
        self._build_go(MEMBERS / "franz_go", self._directory)
        return [f"{self._directory}/{{role}}_member"]

    def _kcat(self):
        return [self._find_program("kcat", "kcat")]


class Processes:
    """Starts members, and ends at its end those that run."""

    def __init__(self, programs, directory):
        self._programs = programs
        self._directory = directory
        self._started = []

    def start(self, kind, role, *arguments):
        """Start a member of a kind of client in a role."""
        log = self._directory / f"member-{len(self._started) + 1}.log"
        words = [str(argument) for argument in arguments]
        member = Member([*self._programs.command(kind, role), *words], log)
        self._started.append(member)
        return member

    def close(self):
        for member in self._started:
            member.close()
