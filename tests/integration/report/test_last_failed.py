"""Playing again what failed: the report that is read, and real comparisons of two simulators."""

import json
import sys
from dataclasses import asdict

import pytest
from broker_sim_integration.cli import main
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.report.last_failed import BEFORE, LastComparison, read_last_comparison
from broker_sim_integration.report.report import Failure
from broker_sim_integration.scenarios.catalogue import select
from broker_sim_integration.simulator.command import own_command
from broker_sim_integration.simulator.process import SimulatorProcess
from click.testing import CliRunner

FAILS = "acks_1_is_answered_at_once"
PASSES = "an_empty_partition_answers_at_max_wait"
CHOSEN = ("--scenario", FAILS, "--scenario", PASSES)
SLOW = """
import json, subprocess, sys
from broker_sim.control.client import ControlClient
from broker_sim_integration.simulator.command import own_command
command = [*own_command().arguments, *sys.argv[1:]]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as simulator:
    ready = simulator.stdout.readline()
    fault = {"api": "Produce", "delay_ms": 300}
    ControlClient(json.loads(ready)["control"]).request("POST", "/inject", fault)
    print(ready, end="", flush=True)
"""
"""A simulator that answers every Produce 300 ms late."""


@pytest.fixture
def report_of(tmp_path):
    """Return a function that writes a report with these verdicts by scenario."""

    def write(verdicts, exit_code=1, failures=()):
        document = {
            "exit_code": exit_code,
            "failures": [asdict(failure) for failure in failures],
            "scenarios": [{"scenario": name, "verdict": verdict} for name, verdict in verdicts.items()],
        }
        (tmp_path / "report.json").write_text(json.dumps(document))
        return tmp_path

    return write


@pytest.fixture
def run(tmp_path):
    """Return a function that plays again what failed in the report of the test's folder."""
    return lambda *arguments: CliRunner().invoke(main, ("--last-failed", "--out", str(tmp_path), *arguments))


def test_failed_scenarios_are_those_that_raise_the_exit_code(report_of):
    last = read_last_comparison(report_of({verdict.name: verdict for verdict in Verdict}))
    passed = {Verdict.AGREED, Verdict.DOCUMENTED, Verdict.NOT_PLAYED}
    assert last.scenarios == {verdict.name for verdict in Verdict if verdict not in passed}
    assert last.exit_code == 1


def test_only_scenarios_that_failed_are_chosen(tmp_path):
    chosen = select((FAILS, PASSES))
    last = LastComparison(tmp_path, 1, frozenset({FAILS}), ())
    assert [scenario.name for scenario in last.failed_of(chosen)] == [FAILS]
    with pytest.raises(ValueError, match="--scenario leaves out all 1 scenarios that failed in"):
        last.failed_of(select((PASSES,)))


def test_without_a_report_there_is_one_line(run, tmp_path):
    done = run()
    assert done.exit_code == 2
    path = tmp_path / "report.json"
    assert done.output == f"--last-failed: no report of a comparison at {path}; run a comparison first\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scenarios": [{"scenario": "a"}]}'])
def test_error_of_an_invalid_report_is_one_line(run, tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    done = run()
    assert done.exit_code == 2
    assert len(done.output.splitlines()) == 1
    assert "is not a report of a comparison" in done.output


def test_where_nothing_failed_there_is_one_line_and_exit_code_0(run, report_of):
    out = report_of({FAILS: Verdict.AGREED}, exit_code=0)
    done = run()
    assert done.exit_code == 0
    assert done.output == f"no scenario failed in {out / 'report.json'}; its exit code was 0\n"


def test_where_nothing_was_played_the_exit_code_stays(run, report_of):
    report_of({FAILS: Verdict.NOT_PLAYED}, exit_code=2)
    assert run().exit_code == 2


def test_what_no_scenario_can_repeat_is_named_and_keeps_the_exit_code(run, report_of):
    late = Failure("all at_once", "", "lateness: p50 9 ms")
    report_of({FAILS: Verdict.AGREED}, failures=[late])
    done = run()
    assert done.exit_code == 1
    assert "this earlier failure needs a run of all scenarios: all at_once\n" in done.output


def test_what_no_scenario_can_repeat_outlives_those_that_can(report_of):
    failures = [Failure("all at_once", "", "late"), Failure(FAILS, "acks=1", "late")]
    last = read_last_comparison(report_of({FAILS: Verdict.LATE}, failures=failures))
    assert last.others == ("all at_once",)
    assert [last.exit_code_with(code) for code in (0, 1, 2)] == [1, 1, 2]
    alone = read_last_comparison(report_of({FAILS: Verdict.LATE}, failures=failures[1:]))
    assert [alone.exit_code_with(code) for code in (0, 1, 2)] == [0, 1, 2]


def verdicts_in(folder):
    document = json.loads((folder / "report.json").read_text())
    return {one["scenario"]: one["verdict"] for one in document["scenarios"]}


@pytest.mark.soak(part="scenarios")
@pytest.mark.threads
def test_only_failed_scenarios_are_replayed_and_the_first_report_remains(run, tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(SLOW)
    command = own_command().arguments
    with SimulatorProcess(command, brokers=BROKERS, configs=COMMON_CONFIGS) as other:
        reference = ("--reference", f"bootstrap={other.bootstrap_servers}")
        slow = ("--simulator", f"{sys.executable} {program}", "--out", str(tmp_path))
        first = CliRunner().invoke(main, (*reference, *slow, *CHOSEN))
        assert first.exit_code == 1, first.output
        before = verdicts_in(tmp_path)
        assert before == {FAILS: Verdict.LATE, PASSES: Verdict.AGREED}
        again = run(*reference)
    assert again.exit_code == 0, again.output
    assert verdicts_in(tmp_path) == {FAILS: Verdict.AGREED}
    assert verdicts_in(tmp_path / BEFORE) == before
    assert (tmp_path / BEFORE / "report.html").exists()
    assert program.exists()
    last = run(*reference)
    assert last.exit_code == 0
    assert last.output.startswith("no scenario failed in ")
