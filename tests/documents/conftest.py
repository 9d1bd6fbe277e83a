"""Runs what the pages of the documentation show; pages.py says how a page is written."""

import os
import runpy
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGES = runpy.run_path(str(HERE / "pages.py"))
FORKED = runpy.run_path(str(HERE / "forked_programs.py"))
TERMINAL = runpy.run_path(str(HERE / "terminal.py"))
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Spark's programs here run for seconds only."""
OURS = ("BROKER_SIM_", "PYTHON", "COVERAGE")


def variables(**more):
    """Return the environment of a user: without what steers this project and its tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
    kept.pop("MAKEFLAGS", None)
    # The directory as it is written, not as a link resolves: that is where the scripts are.
    programs = Path(sys.executable).parent
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "SPARK_SUBMIT_OPTS": QUICK_JVM}
    path = f"{programs}{os.pathsep}{kept['PATH']}"
    root = str(PAGES["ROOT"])
    return {**kept, **plain, "PATH": path, "DOCUMENTS_ROOT": root, **more}


@pytest.fixture
def play(tmp_path):
    """Return a function that types the console blocks of a page, after writing its files."""

    def run(blocks, directory=tmp_path, limit_s=TERMINAL["LIMIT_S"], **more):
        ports = TERMINAL["free_ports"]()
        with TERMINAL["Session"](directory, variables(**more), limit_s) as session:
            typed = [
                block._replace(text=TERMINAL["with_ports"](block.text, ports)) for block in blocks
            ]
            for block in typed:
                if "file" in block.words:
                    (directory / block.words["file"]).write_text(block.text, "utf-8")
            for block in typed:
                if block.language == "console":
                    session.run(block, PAGES["commands"](block))

    return run


@pytest.fixture(scope="session")
def forked_programs(tmp_path_factory):
    options, limit_s = ("-P", "-W", "error"), TERMINAL["LIMIT_S"]
    directory = tmp_path_factory.mktemp("printed")
    with FORKED["ForkedPrograms"](options, variables(), directory, limit_s) as running:
        yield running


@pytest.fixture
def run_python(forked_programs, tmp_path):
    """Return a function that runs a program in a process of its own; returns what subprocess.run does."""
    return lambda text: forked_programs.run(text, tmp_path)


@pytest.fixture
def matches():
    return TERMINAL["matches"]
