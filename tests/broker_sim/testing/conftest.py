"""The plugins as a user's suite has them: pytest in a process of its own, or in this one."""

import pytest

CONFTEST = 'pytest_plugins = ["broker_sim.testing.pytest_plugin"]'
IMPORTS = """
import asyncio, datetime, time, unittest
import pytest
"""


@pytest.fixture
def run_suite(pytester, monkeypatch):
    """Run tests with the plugin in a new process; returns pytester's result."""

    def run(source, *arguments, conftest=CONFTEST, hash_seed="0", **files):
        monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they are slow to import
        if conftest is not None:
            pytester.makeconftest(conftest)
        files = {name: IMPORTS + text for name, text in files.items()}
        if source or files:
            pytester.makepyfile(*[IMPORTS + source] * bool(source), **files)
        return pytester.runpytest_subprocess("-W", "error", *arguments)

    return run


@pytest.fixture
def run_here(pytester, monkeypatch):
    """Run tests with the plugin for real time in this process, which has imported the simulator."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # of this environment's other plugins

    def run(source, *arguments, conftest=""):
        pytester.makeconftest(conftest)
        pytester.makepyfile(f"import pytest\n{source}")
        options = ("-p", "broker_sim.testing.kafka_plugin", "-W", "error", "--strict-markers")
        return pytester.runpytest_inprocess(*options, *arguments)

    return run
