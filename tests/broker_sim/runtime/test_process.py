"""Pause, resume and kill of a process; periodic tasks; the clock of a machine."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.runtime.process import MachineClock, PeriodicTask, Process, ProcessState
from broker_sim.runtime.virtual.run import VirtualScheduler


@pytest.fixture
def scheduler():
    return VirtualScheduler()


@pytest.fixture
def process(scheduler):
    return Process("broker-1", scheduler)


def test_paused_process_keeps_callbacks_and_runs_them_in_order(scheduler, process):
    log = []
    process.call_soon(log.append, 1)
    process.call_later(5, log.append, 2)
    process.pause()
    scheduler.advance_to(10)
    assert log == []
    process.resume()
    assert log == [1, 2]


def test_completions_of_a_timer_run_once_in_the_next_turn(scheduler, process):
    log = []

    def timer():
        process.after_serving(lambda: log.append("completed"))
        process.complete_soon()
        log.append("timer")

    process.call_later(5, timer)
    process.call_later(5, log.append, "next timer")
    scheduler.advance_to(5)
    assert log == ["timer", "next timer", "completed"]
    process.after_serving(lambda: log.append("again"))
    scheduler.advance_to(6)
    assert log[3:] == ["again"]


def test_request_served_before_the_next_turn_runs_what_a_timer_completed(scheduler, process):
    log = []
    process.after_serving(lambda: log.append("completed"))
    process.actions.serve(log.append, "request")
    assert log == ["request", "completed"]
    scheduler.advance_to(1)
    assert log == ["request", "completed"]


def test_killed_process_drops_all_callbacks(scheduler, process):
    log = []
    process.call_soon(log.append, 1)
    process.pause()
    scheduler.advance_to(1)
    process.kill()
    process.resume()
    process.deliver(log.append, 2)
    scheduler.advance_to(2)
    assert log == []
    assert process.state is ProcessState.DEAD


def test_process_paused_during_resume_keeps_the_other_callbacks(scheduler, process):
    log = []
    process.pause()
    process.deliver(lambda: (log.append(1), process.pause()))
    process.deliver(log.append, 2)
    process.resume()
    assert log == [1]
    process.resume()
    assert log == [1, 2]


def test_periodic_task_of_a_paused_process_runs_once_and_then_when_it_would_have(scheduler, process):
    runs = []
    PeriodicTask(process, 10, lambda: runs.append(scheduler.clock.now_ms()))
    scheduler.advance_to(25)
    process.pause()
    scheduler.advance_to(77)
    process.resume()
    assert runs == [10, 20, 77]
    scheduler.advance_to(100)
    assert runs == [10, 20, 77, 80, 90, 100]


def test_cancelled_periodic_task_stops(scheduler, process):
    runs = []
    task = PeriodicTask(process, 10, lambda: runs.append(1), delay_ms=0)
    scheduler.advance_to(10)
    task.cancel()
    scheduler.advance_to(50)
    assert runs == [1, 1]


def test_process_lives_by_the_clock_of_its_machine(scheduler, process):
    clock = MachineClock(scheduler.clock)
    clock.shift(-5_000)
    shifted = Process("broker-2", scheduler, clock)
    assert process.clock.wall_clock_ms() - shifted.clock.wall_clock_ms() == 5_000
    assert process.clock.now_ms() == shifted.clock.now_ms()


def test_failed_callback_during_resume_is_reported_and_the_others_run():
    class Reporting(VirtualScheduler):
        def report_error(self, message, error):
            log.append(type(error))

    log = []
    process = Process("broker-1", Reporting())
    process.pause()
    process.deliver(lambda: 1 / 0)
    process.deliver(log.append, 2)
    process.resume()
    assert log == [ZeroDivisionError, 2]


def test_periodic_task_without_a_period_lets_virtual_time_advance(scheduler, process):
    runs = []
    PeriodicTask(process, 0, lambda: runs.append(scheduler.clock.now_ms()))
    scheduler.advance_to(3)
    assert runs == [0, 1, 2, 3]


def test_blocked_process_is_not_paused_and_keeps_callbacks(process):
    log = []
    process.block()
    process.deliver(log.append, 1)
    assert process.state is ProcessState.RUNNING
    process.resume()
    assert log == []
    process.unblock()
    assert log == [1]
    process.deliver(log.append, 2)
    assert log == [1, 2]


@pytest.mark.parametrize("first", ["resume", "unblock"])
def test_process_that_is_paused_while_blocked_waits_for_both(process, first):
    log = []
    process.block()
    process.pause()
    process.deliver(log.append, 1)
    ends = [process.resume, process.unblock]
    one, other = ends if first == "resume" else reversed(ends)
    one()
    process.deliver(log.append, 2)
    assert log == []
    other()
    assert log == [1, 2]


def test_process_blocked_by_a_callback_keeps_those_behind_it(process):
    log = []
    process.pause()
    process.deliver(process.block)
    process.deliver(log.append, 1)
    process.resume()
    assert log == []
    process.unblock()
    assert log == [1]


def test_killed_process_stays_dead_when_its_disk_answers(process):
    log = []
    process.block()
    process.deliver(log.append, 1)
    process.kill()
    process.unblock()
    process.deliver(log.append, 2)
    assert log == []


def test_wall_clock_jumps_and_timers_do_not_notice():
    machine = VirtualClock(start_ms=5, wall_start_ms=1_000)
    clock = MachineClock(machine)
    clock.shift(-400)
    machine.advance(10)
    assert clock.wall_clock_ms() == 610
    assert machine.wall_clock_ms() == 1_010
    assert clock.now_ms() == 15
    assert clock.deadline_ms(7) == 22
    assert clock.seconds_until(1_015) == 1
    clock.shift(400)
    assert clock.wall_clock_ms() == 1_010
