"""The parts of the soak: what each shows, and its commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

PYTEST: Final = (sys.executable, "-m", "pytest", "-q")
BIN: Final = Path(sys.executable).parent
COMPARE: Final = str(BIN / "broker-sim-compare")
SIMULATE: Final = (
    *(str(BIN / "broker-sim"), "simulate", "--jobs", str(os.cpu_count() or 1)),
    *("--seed", os.environ.get("BROKER_SIM_SEED", "0")),
)


KEPT: Final = "{kept}"
"""In a command: an absolute directory for files from which the part's next run on this tree continues."""


class Part(NamedTuple):
    """A part: its claim, and the commands that check it, each with its arguments."""

    shows: str
    commands: tuple[tuple[str, ...], ...]


EXAMPLES: Final = (
    "background_tasks",
    "cache_across_rebalance",
    "commit_before_work",
    "copy_without_transactions",
    "offsets_outside_transaction",
    "retries_without_idempotence",
)


FUZZED_WITHOUT_FAULTS: Final = ",".join(
    (*("groups", "share_groups", "share_kinds", "share_states", "streams_groups"), *("log", "topics", "transactions"))
)


def _make(*words: str) -> tuple[str, ...]:
    return ("make", "--no-print-directory", *words)


def _marked(part: str) -> tuple[str, ...]:
    return (*PYTEST, "-m", f"soak(part={part!r})")


def _as_root(*words: str) -> tuple[str, ...]:
    """Return the command, run as root: for other users in a user namespace."""
    return ("sh", "-c", 'test "$(id -u)" = 0 || exec unshare --map-root-user "$@"; exec "$@"', "sh", *words)


def _chaos(example: str) -> tuple[str, ...]:
    command = (str(BIN / "broker-sim"), "chaos", f"{example}:test_mended")
    results = f"../../{KEPT}/{example}.jsonl"
    return ("env", "--chdir=examples/chaos", *command, "--seeds", "10000", "--results", results)


PARTS: Final = {
    "test": Part("every claim once", (_make("test"),)),
    "clients": Part("each client in all its versions, methods and groups, here and on Kafka", (_marked("clients"),)),
    "kafka_classes": Part("logs, assignments and coordinators beside Kafka's own classes", (_marked("kafka_classes"),)),
    "kafka_clusters": Part("Kafka's own cluster tests pass here", (_marked("kafka_clusters"),)),
    "scenarios": Part(
        "every scenario of the comparison on a real Kafka, and no drift from the recording",
        (
            _make("images"),
            (sys.executable, "-m", "broker_sim_integration.reference.python_image"),
            _marked("scenarios"),
            (COMPARE, "--out", "out/soak/compare", "--record", "--record-to", "out/recording"),
            (COMPARE, "drift", "out/recording"),
            (COMPARE, "--as-version", "4.3", "--reference", "recorded", "--out", "out/soak/recorded-4.3"),
            (COMPARE, "--as-version", "4.4", "--reference", "recorded", "--out", "out/soak/recorded-4.4"),
        ),
    ),
    "fuzz": Part(
        "980 random sequences of requests do the same here and on a real Kafka",
        (
            _make("images"),
            (
                *(COMPARE, "fuzz", "--seeds", "120", "--out", "out/soak/fuzz"),
                *("--areas", FUZZED_WITHOUT_FAULTS),
            ),
            (
                *(COMPARE, "fuzz", "--seeds", "10", "--out", "out/soak/fuzz"),
                *("--areas", "replication,elections"),
            ),
        ),
    ),
    "mutants": Part("the comparison finds defects put in on purpose", (_marked("mutants"),)),
    "defects": Part(
        "the tests find defects put in on purpose",
        ((sys.executable, "-m", "tools.defects", "--near", "--tier", "test", "--report", "out/soak/defects.json"),),
    ),
    "runs": Part(
        "random runs in virtual time, with and without power losses",
        ((*SIMULATE, "--runs", "2000"), (*SIMULATE, "--runs", "300", "--power-loss")),
    ),
    "power": Part(
        "random runs find defects put in on purpose in few seeds, and every invariant one of its own",
        ((sys.executable, "-m", "tools.power", "--jobs", "2", "--at-most", "25"), _marked("power")),
    ),
    "chaos": Part(
        "the bugs of the example applications are found, and their mended twins pass 10 000 seeds",
        (_marked("chaos"), *(_chaos(example) for example in EXAMPLES)),
    ),
    "kills": Part(
        "nothing acknowledged is lost by 200 rounds of kill -9, and damaged logs are told",
        (("env", "KILL_ROUNDS=200", *_marked("kills")),),
    ),
    "faults": Part(
        "librdkafka's clients go on through ten minutes of 168 faults, and nothing is lost or twice",
        (("env", "FAULT_SECONDS=600", "FAULTS=168", *_marked("faults")),),
    ),
    "logins": Part("100 000 mutated handshakes get nobody in", (_marked("logins"),)),
    "pythons": Part("the fast tests on every Python of this machine", (_make("test-pythons"),)),
    "native": Part(
        "the purgatory's tests on native modules, those with a clock too", (_make("compiled", 'MARKS="not soak"'),)
    ),
    "wheels": Part("what is installed works on every Python, with every extra", (_marked("wheels"),)),
    "environments": Part(
        "a newcomer's commands in all kinds of environments, and the fast tests of the root user",
        (_marked("environments"), _as_root(*_make("test-fast"))),
    ),
    "playground": Part(
        "360 seeds take the same course in a browser's Python; it and the pages of the documentation fit in Chromium",
        (_make("playground"), _marked("playground")),
    ),
    "spark": Part("the pipeline in all its ways", (_make("setup-spark"), _marked("spark"))),
    "benchmarks": Part(
        "every benchmark runs, with its peers", ((sys.executable, "tests/bench/run.py", "--tiny", "--peers"),)
    ),
}
"""Parts of the soak by name, in the order in which they are run."""
