"""The Python of the pages runs, and prints what the comments behind its prints say."""

import re
import runpy
from itertools import pairwise
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGES = runpy.run_path(str(Path(__file__).with_name("pages.py")))
PRINTED = re.compile(r"\bprint\(.*\)  # (.*)$", re.MULTILINE)
THREADS = re.compile(r"\bSystemTimer\b")


def python_blocks(path):
    """Return the blocks of a page that are run by themselves: programs, and files for pytest."""
    blocks = [
        block
        for block in PAGES["read_page"](path).blocks
        if block.language == "python" and not block.words.keys() & {"signature", "file"}
    ]
    tests = [block for block in blocks if re.search("def test_|pytest_plugins", block.text)]
    return [block for block in blocks if block not in tests], tests


def _marks(blocks):
    marks = [pytest.mark.clients] * any(block.needs_client for block in blocks)
    return marks + [pytest.mark.threads] * any(THREADS.search(block.text) for block in blocks)


def _programs():
    for path in PAGES["PAGES"]:
        blocks = PAGES["read_page"](path).blocks
        outputs = {
            before.place: block
            for before, block in pairwise(blocks)
            if block.language == "text" and "output" in block.words
        }
        for block in python_blocks(path)[0]:
            output = outputs.get(block.place) or block._replace(text=_comments(block))
            yield pytest.param(block, output, id=block.place, marks=_marks([block]))


def _comments(block):
    """Return what the comments behind its prints say."""
    return "\n".join(PRINTED.findall(block.text))


def _pages_with_tests():
    for path in PAGES["PAGES"]:
        if tests := python_blocks(path)[1]:
            yield pytest.param(tests, id=PAGES["name_of"](path), marks=_marks(tests))


@pytest.mark.parametrize(("block", "output"), list(_programs()))
def test_a_program_runs_and_prints_what_it_says(block, output, matches, run_python):
    done = run_python(block.text)
    assert done.returncode == 0, f"{block.place}\n{done.stderr}"
    assert matches(output.text, done.stdout, output.varies), f"{block.place}\n{done.stdout}"


@pytest.mark.parametrize("blocks", list(_pages_with_tests()))
def test_tests_of_a_page_pass(blocks, pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    count = 0
    for block in blocks:
        if "pytest_plugins" in block.text:
            pytester.makeconftest(block.text)
        else:
            pytester.makepyfile(**{f"test_{block.line}": block.text})
            count += len(re.findall(r"^(?:async )?def test_", block.text, re.MULTILINE))
    plugin = ("-p", "broker_sim.testing.kafka_plugin")  # it loads by itself elsewhere
    pytester.runpytest_subprocess("-W", "error", *plugin).assert_outcomes(passed=count)
