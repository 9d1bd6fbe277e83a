"""Only few tests with other programs in them are tried again, and only after a whole run."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "second_try.py"))
refusal, main = TOOL["refusal"], TOOL["main"]
CLIENT = "tests/clients/test_x.py::test_y"


@pytest.mark.parametrize(
    ("exit_status", "failed", "words"),
    [
        (None, [CLIENT], "end"),
        (2, [CLIENT], "end"),
        (3, [CLIENT], "end"),
        (1, [], "end"),
        (1, [f"{CLIENT}{number}" for number in range(4)], "4 tests failed"),
        (1, [CLIENT, "tests/purgatory/test_x.py::test_y"], "tests/purgatory/test_x.py::test_y"),
        (1, ["tests/conftest.py"], "tests/conftest.py"),
    ],
)
def test_what_is_no_chance_is_not_tried_again(exit_status, failed, words):
    assert words in refusal(exit_status, failed)


def test_few_tests_with_other_programs_are_tried_again():
    assert refusal(1, [f"{CLIENT}{number}" for number in range(3)]) is None


@pytest.mark.parametrize(
    ("body", "code"), [("assert False", 0), ("raise KeyboardInterrupt", 1), ("pass", 1)]
)
def test_the_tool_reads_what_a_run_has_left(tmp_path, body, code):
    test = tmp_path / "tests" / "clients" / "test_x.py"
    test.parent.mkdir(parents=True)
    test.write_text(f"def test_a():\n    assert False\n\ndef test_b():\n    {body}\n")
    if body == "pass":
        test.write_text("def test_b():\n    pass\n")
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-c", "pytest.ini"]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = [*command, "-o", "cache_dir=cache", "tests"]
    subprocess.run(run, cwd=tmp_path, capture_output=True, check=False)
    assert main(str(tmp_path / "cache")) == code
