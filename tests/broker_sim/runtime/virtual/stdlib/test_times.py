"""The clocks of the standard library: virtual in the code of a virtual loop, real everywhere else."""

# ruff: noqa: ASYNC251, DTZ002, DTZ003, DTZ005, DTZ006, DTZ011 - they are what is tested
from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import pickle
import random
import threading
import time
from datetime import date, datetime

import pytest

from broker_sim.runtime.virtual import VirtualEventLoop
from broker_sim.runtime.virtual.stdlib import install, uninstall

WALL_START_MS = 1_700_000_000_000
"""14 November 2023, 22:13:20 UTC"""
install()


def test_clocks_follow_the_loop(run):
    async def main():
        await asyncio.sleep(1.5)
        return (
            time.monotonic(),
            time.monotonic_ns(),
            time.perf_counter(),
            time.perf_counter_ns(),
            time.time(),
            time.time_ns(),
            time.clock_gettime(time.CLOCK_MONOTONIC),
            time.clock_gettime_ns(time.CLOCK_REALTIME),
        )

    wall_s = WALL_START_MS / 1000 + 1.5
    wall_ns = 1_700_000_001_500_000_000
    assert run(main) == (1.5, 1_500_000_000, 1.5, 1_500_000_000, wall_s, wall_ns, 1.5, wall_ns)


def test_time_of_day_follows_the_loop(run):
    async def main():
        await asyncio.sleep(60)
        return (
            dt.datetime.now(dt.UTC).isoformat(),
            datetime.now(dt.UTC).isoformat(),
            datetime.fromtimestamp(time.time(), dt.UTC).isoformat(),
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
            time.gmtime(0).tm_year,
        )

    at = "2023-11-14T22:14:20+00:00"
    assert run(main) == (at, at, at, "2023-11-14 22:14:20", 1970)


@pytest.mark.filterwarnings("ignore:datetime.*utcnow:DeprecationWarning")
def test_local_time_of_day_is_that_of_the_same_moment(run):
    async def main():
        await asyncio.sleep(0.000123)
        local = datetime.fromtimestamp(time.time())
        assert datetime.now() == datetime.today() == local
        assert datetime.utcnow() == datetime.now(dt.UTC).replace(tzinfo=None)
        assert date.today() == local.date()
        assert time.localtime() == time.localtime(time.time())
        assert time.ctime() == time.asctime() == time.ctime(time.time())
        assert time.strftime("%H:%M") == local.strftime("%H:%M")
        return local.microsecond

    assert run(main) == 123


def test_subclasses_of_datetime_make_their_own_kind(run):
    class Moment(datetime):
        pass

    async def main():
        return type(Moment.now(dt.UTC)), Moment.now(dt.UTC).year

    assert run(main) == (Moment, 2023)
    assert Moment.now(dt.UTC).year > 2023


def test_log_records_have_virtual_times(run, caplog):
    async def main():
        logging.getLogger("virtual").warning("now")

    run(main)
    assert caplog.records[0].created == WALL_START_MS / 1000


def test_outside_of_the_loop_time_is_real(run):
    seen = []
    running = threading.Event()

    def foreign():
        running.wait()
        seen.extend([time.time(), datetime.now(dt.UTC).year])
        before = time.monotonic()
        time.sleep(0.01)
        seen.append(time.monotonic() - before)

    async def main():
        running.set()
        while thread.is_alive():  # noqa: ASYNC110 - in real time
            await asyncio.sleep(0)

    thread = threading.Thread(target=foreign)
    thread.start()
    run(main, max_steps_at_one_time=10**9)
    thread.join()
    now, year, slept = seen
    assert now > WALL_START_MS / 1000 + 10_000_000
    assert year > 2023
    assert 0.01 <= slept < 10
    assert time.time() - now < 60

    async def real():
        return time.monotonic() - asyncio.get_running_loop().time()

    assert abs(asyncio.run(real())) < 10


def test_blocking_sleep_stops_the_whole_loop(run):
    async def main():
        loop = asyncio.get_running_loop()
        ran = []
        loop.call_later(1, lambda: ran.append(loop.time()))
        time.sleep(4)
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)
        return ran, time.monotonic()

    assert run(main) == ([4], 4)


def test_stepped_loop_has_its_clocks_in_callbacks_only():
    loop = VirtualEventLoop()
    seen = []
    loop.call_later(5, lambda: seen.append(time.monotonic()))
    before = time.monotonic()
    loop.step()
    assert seen == [5]
    assert 0 <= time.monotonic() - before < 10


def test_replacements_are_pickled_by_their_names():
    for function in (time.time, random.choice, os.urandom, random.Random.seed):
        assert pickle.loads(pickle.dumps(function)) is function


def test_uninstall_restores_the_originals():
    try:
        uninstall()
        originals = (time.time, time.sleep, datetime.__dict__["now"])
        assert all(type(function).__name__.startswith(("builtin", "classmethod")) for function in originals)
        install()
        install()
        assert time.time is not originals[0]
        assert time.time.__name__ == "time"
        assert time.time.__doc__ == originals[0].__doc__
        uninstall()
        assert (time.time, time.sleep, datetime.__dict__["now"]) == originals
        uninstall()
    finally:
        install()
