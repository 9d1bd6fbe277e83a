"""Deploys and scaling: workers are asked to stop, killed when they do not, and started again in a new version."""

import asyncio
import gc
import shutil
import warnings

import pytest

from broker_sim.chaos import Schedule, ScheduleError, run_chaos
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.sightings import FaultCount


def schedule(*faults):
    return Schedule.parse("\n".join(("seed=1 brokers=1 workers=2 duration_ms=20000", *faults)))


class Shop:
    """Workers of two versions, and what they have done, with the time."""

    def __init__(self, *, stops_after_s=0.5):
        self.lines = []
        self.stops_after_s = stops_after_s

    def version(self, name):
        async def main(me):
            clock = asyncio.get_running_loop()
            self.lines.append((round(clock.time()), me.name, f"{name} starts"))
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(self.stops_after_s)
                self.lines.append((round(clock.time()), me.name, f"{name} ends"))

        return main

    async def test(self, chaos):
        chaos.start(self.version("old"), count=2, versions=[self.version("new")])
        await chaos.faults_over()
        await asyncio.sleep(20)


def lines_of(shop, *faults):
    """Return what happened after both workers had started."""
    outcome = run_chaos(shop.test, schedule(*faults))
    assert outcome.error is None
    return shop.lines[2:]


def test_rolling_deploy_stops_one_after_the_other_and_starts_the_new_version():
    assert lines_of(Shop(), "5000 deploy workers value=rolling") == [
        (6, "worker-1", "old ends"),
        (6, "worker-1", "new starts"),
        (7, "worker-2", "old ends"),
        (7, "worker-2", "new starts"),
    ]


def test_deploy_of_all_stops_them_together():
    assert [line[1:] for line in lines_of(Shop(), "5000 deploy workers value=all")] == [
        ("worker-1", "old ends"),
        ("worker-2", "old ends"),
        ("worker-1", "new starts"),
        ("worker-2", "new starts"),
    ]


def test_worker_that_does_not_stop_in_its_grace_period_is_killed():
    assert lines_of(Shop(stops_after_s=60), "5000 deploy worker-1 value=rolling") == [(15, "worker-1", "new starts")]


def test_last_version_stays():
    deploys = [f"{at} deploy worker-1 value=all" for at in (2_000, 6_000, 9_000)]
    starts = [line[2] for line in lines_of(Shop(), *deploys) if line[2].endswith("starts")]
    assert starts == ["new starts"] * 3


def test_worker_that_crashes_comes_back_in_the_version_that_was_deployed():
    starts = [line[2] for line in lines_of(Shop(), "3000 crash worker-1 for=4000", "4000 deploy worker-1 value=all")]
    assert starts == ["new starts"]


def test_scaled_down_workers_stop_and_start_again():
    assert [line[1:] for line in lines_of(Shop(), "5000 scale workers for=5000 value=-1")] == [
        ("worker-2", "old ends"),
        ("worker-2", "old starts"),
    ]


def test_more_workers_end_with_the_fault():
    assert lines_of(Shop(), "5000 scale workers for=5000 value=2") == [
        (5, "worker-3", "old starts"),
        (5, "worker-4", "old starts"),
        (10, "worker-3", "old ends"),
        (10, "worker-4", "old ends"),
    ]


def test_faults_are_over_when_the_last_worker_has_started_again():
    shop = Shop(stops_after_s=8)
    outcome = run_chaos(shop.test, schedule("15000 deploy workers value=rolling"))
    over = next(moment.at_s for moment in outcome.moments if moment.what.startswith("all over"))
    assert over > 15 + 2 * 8
    assert outcome.faults == {"deploy": FaultCount(drawn=1, happened=1, effective=1)}


def test_bug_while_it_stops_fails_the_test():
    async def test(chaos):
        async def main():
            try:
                await asyncio.sleep(100)
            finally:
                raise ValueError("lost on the way out")

        chaos.start(main)
        await chaos.faults_over()

    outcome = run_chaos(test, schedule("5000 deploy workers value=all"))
    assert "ValueError: lost on the way out" in outcome.text


def test_resources_that_a_worker_leaves_open_cause_no_warning():
    class Connection:
        def __del__(self):
            warnings.warn("unclosed", ResourceWarning, stacklevel=1)

    async def work():
        connection = Connection()
        await asyncio.sleep(2)
        raise ConnectionError(f"no answer from {connection}")

    async def test(chaos):
        chaos.start(work, count=2)
        await chaos.faults_over()

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert run_chaos(test, schedule("1000 deploy worker-1 value=rolling")).error is None
        gc.collect()
    assert [str(warning.message) for warning in heard] == []


@pytest.mark.parametrize("fault", ["deploy workers value=half", "scale workers value=0", "scale workers value=more"])
def test_invalid_deploy_is_refused(fault):
    (action,) = schedule(f"1 {fault}").actions
    with pytest.raises(ScheduleError, match="add a value"):
        check_action(action)


def test_values_that_are_drawn_are_allowed():
    for kind in ("deploy", "scale"):
        for value in KINDS[kind].values:
            check_action(schedule(f"1 {kind} workers value={value}").actions[0])


STOPS = """
import signal, sys, time
def stop(*_):
    print("gives back its lease", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
while True:
    time.sleep(1)
"""


@pytest.mark.threads
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev")
def test_command_gets_sigterm():
    async def test(chaos):
        chaos.start(chaos.program("python", "-S", "-c", STOPS))
        await chaos.faults_over()

    moments = run_chaos(test, schedule("5000 deploy workers value=all")).moments
    lines = [moment.what for moment in moments if moment.who == "worker-1"]
    assert lines == ["is asked to stop", "gives back its lease", "has stopped", "starts again"]
