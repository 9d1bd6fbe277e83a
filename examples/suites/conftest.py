"""Loads the plugin for virtual time; the fixture `kafka` comes with the package."""

import pytest

pytest_plugins = ["broker_sim.testing.pytest_plugin"]


@pytest.fixture
def anyio_backend():
    """Tests marked `anyio` run on asyncio, in real time."""
    return "asyncio"
