"""`broker-sim replay` writes a trace, or two runs, as one HTML file."""

import json

import pytest
from click.testing import CliRunner

from broker_sim import VirtualCluster
from broker_sim.cli.replay import command
from broker_sim.errors import MissingExtraError
from broker_sim.page.recording import runs_of_html
from broker_sim.trace import reading


@pytest.fixture
def replay(tmp_path):
    """Return a function that runs the command and returns its result."""

    def run(*arguments):
        return CliRunner().invoke(command, [*map(str, arguments)])

    return run


@pytest.fixture
def trace(tmp_path):
    """Return a function that traces a cluster whose followers' fetches wait for some seconds."""

    def make(name):
        with VirtualCluster(trace=tmp_path / name) as cluster:
            cluster.create_topic("orders", 1, 3)
            cluster.advance(3_000)
        return tmp_path / name

    return make


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz", "trace.parquet"])
def test_trace_becomes_a_file_that_plays(replay, trace, tmp_path, name):
    out = tmp_path / "run.html"
    result = replay(trace(name), "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out) in result.output
    [run] = runs_of_html(out.read_text("utf-8"))
    assert run.title.startswith(f"{name}, run ")
    assert {one.purgatory for one in run.ended} == {"Fetch"}
    assert {one.client for one in run.requests} <= {"replica-1", "replica-2", "replica-3"}
    parts = [part for frame in run.frames for part in frame["set"].values()]
    assert any(part["parked"] for part in parts)


def test_two_runs_are_one_file(replay, trace, tmp_path):
    first, both = tmp_path / "first.html", tmp_path / "both.html"
    assert replay(trace("trace.jsonl"), "--out", first).exit_code == 0
    result = replay(first, trace("other.jsonl"), "--out", both)
    assert result.exit_code == 0, result.output
    assert [run.title[:6] for run in runs_of_html(both.read_text("utf-8"))] == ["trace.", "other."]


def test_name_of_the_file_is_that_of_the_trace(replay, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert replay(trace("trace.jsonl.gz")).exit_code == 0
    assert (tmp_path / "trace.html").exists()


def test_input_is_not_overwritten(replay, trace, tmp_path):
    file = tmp_path / "run.html"
    assert replay(trace("trace.jsonl"), "--out", file).exit_code == 0
    result = replay(file, "--out", file)
    assert (result.exit_code, "--out" in result.output) == (1, True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "{}\n", "line 1 is not an event of a trace"),
        ("a.jsonl", "", "has no events"),
        ("a.html", "<html></html>", "has no run that this version can read"),
        ("a.html", '<script type="application/gzip" id="recording">AAAA</script>', "has no run"),
    ],
)
def test_file_that_cannot_be_played_is_refused_in_one_line(replay, tmp_path, name, text, message):
    file = tmp_path / name
    file.write_text(text)
    result = replay(file, "--out", tmp_path / "out.html")
    assert result.exit_code == 1
    assert message in result.output
    assert len(result.output.splitlines()) == 1


def test_parquet_without_its_extra_is_one_line_with_the_remedy(replay, trace, tmp_path, monkeypatch):
    directory = trace("trace.parquet")

    def without(*_):
        raise MissingExtraError("pyarrow is not installed: pip install 'broker-sim[parquet]'")

    monkeypatch.setattr(reading, "arrow_with", without)
    result = replay(directory, "--out", tmp_path / "out.html")
    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
    assert "pip install 'broker-sim[parquet]'" in result.output


def test_other_runs_of_a_trace_are_said(replay, trace, tmp_path):
    file = trace("trace.jsonl")
    line = json.loads(file.read_text().splitlines()[0])
    with file.open("a") as lines:
        lines.write(json.dumps(line | {"run_id": "other"}) + "\n")
    assert "1 more runs" in replay(file, "--out", tmp_path / "out.html").output
