"""A machine's wall clock jumps; its monotonic time does not."""

from broker_sim_purgatory import VirtualClock

from broker_sim.runtime.wall_clock import MachineClock


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
