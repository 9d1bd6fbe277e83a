"""The soak runs its parts, remembers those that passed on this tree, and knows every part of the marks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from broker_sim_integration.fuzz.areas.all_areas import AREAS
from click.testing import CliRunner

from tools.soak import __main__ as command
from tools.soak import report
from tools.soak.parts import PARTS, Part

ROOT = Path(__file__).parents[2]
MARK = re.compile(r'\bsoak\(part="(\w+)"\)')


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs the command on two parts: `good` leaves a line in a file, `bad` fails."""
    ran = tmp_path / "ran"
    note = f"open({str(ran)!r}, 'a').write('good\\n')"
    keep = "import sys; open(sys.argv[1], 'a').write('kept')"
    parts = {
        "good": Part("it works", ((sys.executable, "-c", note), (sys.executable, "-c", keep, "{kept}/seeds"))),
        "bad": Part("it fails", ((sys.executable, "-c", "raise SystemExit(3)"), ("no-such-program",))),
    }
    trees = ["a tree"]
    monkeypatch.setattr(command, "PARTS", parts)
    monkeypatch.setattr(report, "PATH", tmp_path / "out" / "report.json")
    monkeypatch.setattr(report, "tree", lambda: trees[-1])

    def run(*words):
        done = CliRunner().invoke(command.main, words)
        return done.exit_code, done.output, ran.read_text().count("good") if ran.exists() else 0

    run.trees = trees
    return run


def test_parts_that_passed_are_not_run_again_on_the_same_tree(run):
    assert run("good")[::2] == (0, 1)
    code, told, count = run("good")
    assert (code, count) == (0, 1)
    assert "good: passed already on this tree" in told
    assert run("good", "--again")[::2] == (0, 2)
    run.trees.append("another tree")
    assert run("good")[::2] == (0, 3)


def test_what_a_part_keeps_is_there_on_the_same_tree_unless_all_is_run_again(run):
    seeds = report.kept("a tree", "good") / "seeds"
    run("good")
    report.write("a tree", {})
    run("good")
    assert seeds.read_text() == "kept" * 2
    run("good", "--again")
    assert seeds.read_text() == "kept"
    run.trees.append("another tree")
    run("good")
    assert (report.kept("another tree", "good") / "seeds").read_text() == "kept"


def test_a_part_that_fails_stops_at_its_command_and_the_others_are_run(run):
    code, told, count = run()
    assert (code, count) == (1, 1)
    assert "FAILED" in told
    outcomes = report.read("a tree")
    assert outcomes["good"].passed
    assert "raise SystemExit(3)" in outcomes["bad"].failed_command
    assert run("bad")[0] == 1


def test_the_list_says_how_parts_ended_and_runs_none(run):
    run("good")
    code, told, count = run("--list")
    assert (code, count) == (0, 1)
    assert re.search(r"good\s+│ passed", told)
    assert re.search(r"bad\s+│ not run", told)


def test_an_unknown_part_names_those_there_are(run):
    code, told, _ = run("other")
    assert code == 2
    assert "unknown part 'other'; parts: good, bad" in told


def test_every_part_that_tests_are_marked_with_is_run_by_it():
    marked = {part for path in ROOT.glob("tests/**/*.py") for part in MARK.findall(path.read_text())}
    run_by = {name for name, part in PARTS.items() if any(f"soak(part={name!r})" in c for c in part.commands)}
    assert marked - {"..."} == run_by


def test_the_fuzzed_areas_are_all():
    commands = [words for words in PARTS["fuzz"].commands if "--areas" in words]
    named = [words[words.index("--areas") + 1].split(",") for words in commands]
    assert sorted(name for names in named for name in names) == sorted(AREAS)


def test_the_tree_is_another_one_with_each_change_and_the_index_stays(tmp_path, monkeypatch):
    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@x")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(report, "ROOT", tmp_path)
    git("init")
    (tmp_path / "a").write_text("1")
    git("add", "--all")
    git("commit", "--message", "x")
    first = report.tree()
    assert report.tree() == first
    (tmp_path / "b").write_text("1")
    second = report.tree()
    assert second != first
    git("add", "--all")
    git("commit", "--message", "y")
    assert report.tree() == second
