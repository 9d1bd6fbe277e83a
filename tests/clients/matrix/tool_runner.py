"""Kafka's command-line tools, run in one JVM."""

import subprocess
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOOL_RUNNER = Path(__file__).with_name("ToolRunner.java")
TOOL_TIMEOUT_S = 180
END_TIMEOUT_S = 120


class ToolRunner:
    """One JVM for all of Kafka's tools, because most of a tool's time is the start of its JVM."""

    def __init__(self, java, log):
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [*java, str(TOOL_RUNNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._pool = ThreadPoolExecutor(1)

    def run(self, name, *arguments):
        """Run a tool; returns its exit code and what it has printed to stdout and to stderr."""
        self._process.stdin.write("\t".join([name, *arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._pool.submit(self._process.stdout.readline).result(TOOL_TIMEOUT_S)
        code, out, err = answer.split("\t")
        return int(code), b64decode(out).decode(), b64decode(err).decode()

    def close(self):
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)
        self._pool.shutdown()
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()
