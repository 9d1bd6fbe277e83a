"""All jobs in one session: the same tables as by one command after the other, a line for each."""

import re

import pytest

pytestmark = pytest.mark.spark

T = 1_700_000_000_000
TABLES = (
    "events",
    "observations",
    "quarantine",
    "lifecycles",
    "broken_lifecycles",
    "latency",
    "occupancy",
    "occupancy_summary",
    "parity",
    "parity_scenarios",
    "parity_timing",
)
STEP = re.compile(r"(\w+): (.*) \(\d+\.\d s\)")


@pytest.fixture
def command(invoke):
    """Return a function that runs a command and returns its lines."""

    def run(*arguments):
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    return run


@pytest.fixture
def lines(tmp_path, life, observation, write_lines):
    steps = [observation(side=side, attempt=n) for side in ("kafka", "sim") for n in range(3)]
    lives = [event for number in range(5) for event in life(number, T, T + 10 * number)]
    return write_lines(tmp_path / "lines.jsonl", [*lives, *steps, "broken"])


def test_all_leaves_what_the_jobs_leave_one_after_the_other(spark, command, lines, tmp_path):
    out, apart = tmp_path / "all", tmp_path / "apart"
    *steps, last = command("all", "--input", lines, "--output", out)
    said = [STEP.fullmatch(line).groups() for line in steps]
    alone = [
        command("ingest", "--input", lines, "--output", apart),
        *[
            command(job, "--input", apart, "--output", apart)
            for job in ("lifecycle", "latency", "occupancy", "parity", "report")
        ],
    ]
    assert last == "all: 6 jobs"
    assert [[f"{job}: {answer}"] for job, answer in said[:-1]] == alone[:-1]
    assert said[-1] == ("report", f"{out}/report.html with 4 pictures")
    assert alone[-1] == [f"report: {apart}/report.html with 4 pictures"]
    for table in TABLES:
        found, expected = (
            sorted(map(str, spark.read.parquet(f"{directory}/{table}").collect()))
            for directory in (out, apart)
        )
        assert found == expected, table


def test_all_leaves_out_what_has_no_input_and_sweeps_when_asked(
    command, tmp_path, observation, write_lines
):
    seen = write_lines(tmp_path / "seen.jsonl", [observation()])
    settings = tmp_path / "settings.json"
    settings.write_text('{"duration_ms": [1000]}')
    said = command("all", "--input", seen, "--output", tmp_path / "out", "--settings", settings)
    assert [line.split(":")[0] for line in said] == ["ingest", "parity", "sweep", "report", "all"]
    assert said[2].startswith("sweep: 3 runs of 1 settings (")
