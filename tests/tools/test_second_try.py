"""Only few failures with other programs in them are tried again, and only after a whole run."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "second_try.py"))
refusal, main, Run = TOOL["refusal"], TOOL["main"], TOOL["Run"]
PASSED, FAILED, TRY_AGAIN = 0, 1, 75
CLIENT = "tests/clients/test_x.py::test_y"
OWN = "tests/purgatory/test_x.py::test_y"


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (Run(None, [CLIENT], []), "end"),
        (Run(1, [], []), "end"),
        (Run(1, [f"{CLIENT}{number}" for number in range(4)], []), "4 failed"),
        (Run(1, [CLIENT, OWN], [OWN]), OWN),
    ],
)
def test_what_is_no_chance_is_not_tried_again(run, words):
    assert words in refusal(run)


def test_few_failures_with_other_programs_are_tried_again():
    assert refusal(Run(1, [f"{CLIENT}{number}" for number in range(3)], [])) is None


@pytest.mark.parametrize(
    ("folder", "body", "code"),
    [
        ("clients", "assert False", TRY_AGAIN),
        ("purgatory", "assert False", FAILED),
        ("purgatory/real_time", "assert False", TRY_AGAIN),
        ("clients", "raise KeyboardInterrupt", FAILED),
        ("clients", "pass", PASSED),
    ],
)
def test_the_tool_reads_what_tests_have_left(tmp_path, folder, body, code):
    test = tmp_path / "tests" / folder / "test_x.py"
    test.parent.mkdir(parents=True)
    first = "pass" if code == PASSED else "assert False"
    mark = "@pytest.mark.threads\n" if folder.endswith("real_time") else ""
    tests = f"{mark}def test_a():\n    {first}\n\n{mark}def test_b():\n    {body}\n"
    test.write_text(f"import pytest\n\n{tests}")
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-c", "pytest.ini"]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = [*command, "-o", "cache_dir=cache", "tests"]
    subprocess.run(run, cwd=tmp_path, capture_output=True, check=False)
    assert main(str(tmp_path / "cache")) == code


def test_tests_that_never_ran_have_not_passed(tmp_path):
    assert main(str(tmp_path)) == FAILED


@pytest.mark.parametrize(
    ("verdicts", "failures", "exit_code", "code"),
    [
        (["agreed", "agreed"], [], 0, PASSED),
        (["agreed", "late"], ["second"], 1, TRY_AGAIN),
        (["reference late", "late"], ["first", "second", "second"], 1, TRY_AGAIN),
        (["late", "differed"], ["first", "second"], 1, FAILED),
        (["late", "flaky"], ["first", "second"], 1, FAILED),
        (["late", "agreed"], ["first", "all at_once"], 1, FAILED),
        (["reference trouble", "agreed"], ["first"], 3, FAILED),
        (["agreed", "agreed"], [], 3, FAILED),
    ],
)
def test_scenarios_are_played_again_when_all_that_failed_were_late(
    tmp_path, verdicts, failures, exit_code, code
):
    scenarios = [
        {"scenario": name, "verdict": verdict}
        for name, verdict in zip(("first", "second"), verdicts, strict=True)
    ]
    report = {
        "exit_code": exit_code,
        "scenarios": scenarios,
        "failures": [{"scenario": name, "step": "", "why": ""} for name in failures],
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    assert main(str(path)) == code


def test_a_comparison_without_a_report_has_not_passed(tmp_path):
    assert main(str(tmp_path / "report.json")) == FAILED
