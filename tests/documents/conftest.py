"""Runs what the pages of the documentation show; pages.py says how a page is written."""

import contextlib
import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGES = runpy.run_path(str(HERE / "pages.py"))
FORKED = runpy.run_path(str(HERE / "forked_programs.py"))
TERMINAL = runpy.run_path(str(HERE / "terminal.py"))
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms500m -Xmn300m"
"""Spark's programs here run for seconds only, and make much garbage."""
SHARING = """
import os, sys
print(os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"], flush=True)
sys.stdin.read()
"""
"""A program that tells by which variables spark-submit lets it find Spark's process, and keeps that running."""
SUBMITTED = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
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
            typed = [block._replace(text=TERMINAL["with_ports"](block.text, ports)) for block in blocks]
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


@pytest.fixture(scope="session")
def submitted(tmp_path_factory):
    """The variables that spark-submit gives a command, and `directory`: all commands share its Spark process.

    Each command is a program of its own and opens a session of its own, with the defaults for this machine.
    The process finds the files of a page in the directory in which it was started.
    """
    from broker_sim_integration.pipeline.spark.session import default_conf

    directory = tmp_path_factory.mktemp("submitted")
    (directory / "sharing.py").write_text(SHARING)
    conf = default_conf("local[*]") | {"spark.driver.extraJavaOptions": QUICK_JVM}
    options = [word for pair in conf.items() for word in ("--conf", "=".join(pair))]
    home = Path(find_spec("pyspark").origin).parent
    with (
        (directory / "said").open("w+", encoding="utf-8") as said,
        subprocess.Popen(
            [home / "bin" / "spark-submit", "--master", "local[*]", *options, "sharing.py"],
            cwd=directory,
            env=variables(SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1"),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(process.terminate)
        found = process.stdout.readline().split()
        assert len(found) == len(SUBMITTED), Path(said.name).read_text(encoding="utf-8")
        yield {"directory": directory, **dict(zip(SUBMITTED, found, strict=True))}


@pytest.fixture
def run_python(forked_programs, tmp_path):
    """Return a function that runs a program in a process of its own; returns what subprocess.run does."""
    return lambda text: forked_programs.run(text, tmp_path)


@pytest.fixture
def matches():
    return TERMINAL["matches"]
