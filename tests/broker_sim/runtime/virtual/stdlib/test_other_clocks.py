"""freezegun and time-machine beside virtual time: they work in real time, and are refused in virtual time."""

import asyncio
import sys
import time
from types import ModuleType

import freezegun
import pytest
import time_machine

from broker_sim.runtime.virtual import EscapeError, VirtualRun, install

install()
VIRTUAL_S = 1_700_000_005
YEAR_2020_S = 1_577_836_800
APPLICATION = """
from datetime import datetime
from time import time
import time as time_module

def clocks():
    return int(time()), int(time_module.time()), datetime.now().year
"""
TOOLS = {"freezegun": freezegun.freeze_time, "time-machine": time_machine.travel}


@pytest.fixture(params=TOOLS)
def frozen(request):
    """Return a context in which time stands at the beginning of 2020."""
    return TOOLS[request.param]("2020-01-01")


@pytest.fixture
def application(monkeypatch):
    """A module of a program that was imported when the functions of virtual time were in."""
    module = ModuleType("application")
    exec(APPLICATION, module.__dict__)
    monkeypatch.setitem(sys.modules, "application", module)
    return module


def test_time_is_frozen_in_real_time_and_virtual_in_a_run_afterwards(frozen, application, run):
    async def main():
        await asyncio.sleep(5)
        return application.clocks()

    for _ in range(2):
        with frozen:
            assert application.clocks() == (YEAR_2020_S, YEAR_2020_S, 2020)
        assert application.clocks()[0] > VIRTUAL_S
        assert run(main) == (VIRTUAL_S, VIRTUAL_S, 2023)


def test_real_time_continues_after_a_freeze(frozen):
    with frozen:
        pass
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 60


def test_freezing_is_refused_in_virtual_time(frozen, run):
    async def main():
        with frozen:
            raise AssertionError("time is frozen")

    with pytest.raises(EscapeError, match=r"virtual time has a clock of its own.*asyncio\.sleep"):
        run(main)


def test_run_does_not_begin_while_time_is_frozen(frozen):
    with frozen, pytest.raises(EscapeError, match="virtual time has a clock of its own"):
        VirtualRun()
