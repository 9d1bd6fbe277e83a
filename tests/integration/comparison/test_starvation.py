"""How long a process was kept from running: read from the kernel, kept as intervals."""

import subprocess
import sys

import pytest
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.comparison.starvation import Starvation, waited_for_processor_ms

BUSY = "print(flush=True)\nwhile True: pass"


def test_a_wait_is_what_was_added_right_before_the_look():
    figures = iter([10.0, 10.1, 40.1])
    starvation = Starvation(lambda: next(figures))
    starvation.look()
    before_ms = now_ms()
    starvation.look()
    after_ms = now_ms()
    ((began_ms, ended_ms),) = starvation.intervals
    assert ended_ms - began_ms == pytest.approx(30)
    assert before_ms <= ended_ms <= after_ms


def test_a_process_that_is_not_there_waits_for_nothing():
    assert waited_for_processor_ms(2**30)() == 0


@pytest.mark.threads
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells")
def test_two_processes_on_one_processor_wait_for_each_other():
    command = ["taskset", "-c", "0", sys.executable, "-c", BUSY]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in both:
            process.stdout.readline()
        waited = [waited_for_processor_ms(process.pid) for process in both]
        before = sum(read() for read in waited)
        began_ms = now_ms()
        while sum(read() for read in waited) - before < 100:
            assert now_ms() - began_ms < 30_000
    finally:
        for process in both:
            process.kill()
            process.wait()
            process.stdout.close()
