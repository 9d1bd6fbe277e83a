"""`broker-sim simulate` tells which seeds fail, how to repeat them, and a test of the first."""

import os
import pickle
import re
import subprocess
import sys
from dataclasses import fields
from types import SimpleNamespace

from click.testing import CliRunner

from broker_sim.chaos.random_run import draw_schedule, run
from broker_sim.chaos.search import SeedOutcome, run_seed
from broker_sim.cli.simulate import command
from broker_sim.cluster.virtual.invariants import InvariantViolationError

FIRST = next(seed for seed in range(100) if draw_schedule(seed).transactional)


def simulate(*arguments):
    return CliRunner().invoke(command, [*map(str, arguments)])


def test_runs_that_pass_are_counted():
    result = simulate("--runs", 2, "--seed", FIRST, "--jobs", 1, "--duration", 2)
    assert result.exit_code == 0
    assert "2 of 2 runs passed" in result.stdout
    assert f"seeds {FIRST} to {FIRST + 1}" in result.output
    assert re.search(r"transactions: \d+ committed, [1-9]\d* aborted, \d+ in doubt;", result.stdout)


def test_failing_seed_is_one_line_with_the_command_and_a_test(monkeypatch):
    def find(*_):
        raise InvariantViolationError("no-duplicates", "partition 0 has b'x' 2 times")

    monkeypatch.setattr(run, "check_end", find)
    result = simulate("--runs", 1, "--seed", 8, "--jobs", 1, "--duration", 1)
    assert result.exit_code == 1
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("seed 8:"))
    assert "no-duplicates: partition 0 has b'x' 2 times, at " in line
    assert line.endswith("repeat: broker-sim simulate --runs 1 --seed 8 --duration 1")
    assert re.search(r"\n# \d+ faults -> 0, in \d+ runs:\nfrom broker_sim", result.stdout)
    assert 'schedule = Schedule.parse("""\n        seed=8 brokers=' in result.stdout
    assert "0 of 1 runs passed" in result.stdout


def test_outcome_of_a_seed_can_be_sent_to_another_process():
    runs = SimpleNamespace(draw=lambda seed: seed, run=lambda _: SimpleNamespace(invariant=None, text="", summary=None))
    outcome = run_seed(runs, 7)
    assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_one_failure_among_runs_that_pass_gives_exit_code_1(monkeypatch):
    passed = run.RunSummary(*[0] * len(fields(run.RunSummary)))
    outcomes = [SeedOutcome(1, None, "", 0, passed), SeedOutcome(2, "no-duplicates", "a failure", 0)]
    monkeypatch.setattr("broker_sim.cli.simulate.run_seeds", lambda *_: outcomes)
    result = simulate("--runs", 2, "--seed", 1, "--no-shrink")
    assert result.exit_code == 1
    assert "1 of 2 runs passed" in result.stdout


def test_power_losses_are_an_option_which_the_command_repeats(monkeypatch):
    result = simulate("--runs", 1, "--seed", 11, "--jobs", 1, "--power-loss")
    assert result.exit_code == 0
    assert re.search(r"seed 11: \d+ unflushed records lost in power failures: partition 0: ", result.stdout)

    def find(*_):
        raise InvariantViolationError("no-duplicates", "partition 0 has b'x' 2 times")

    monkeypatch.setattr(run, "check_end", find)
    result = simulate("--runs", 1, "--seed", 8, "--jobs", 1, "--power-loss", "--no-shrink")
    assert "repeat: broker-sim simulate --runs 1 --seed 8 --power-loss\n" in result.stdout


def test_memory_does_not_grow_with_the_runs():
    few, many = (_peak_memory("--runs", runs, "--seed", 50_000) for runs in (4, 24))
    # Twice as much where nobody collects what runs leave behind, and 1.2 times where it is done.
    assert many < 1.5 * few


def _peak_memory(*arguments):
    """Return the most memory that a process of these runs had, in the unit of this system."""
    program = "from broker_sim.cli import main; main()"
    words = ["simulate", "--jobs", "1", "--duration", "1", *map(str, arguments)]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss
