"""The order of virtual time."""

from broker_sim.cluster.virtual_scheduler import VirtualScheduler
from purgatory import DelayedOperation, DelayedOperationPurgatory, InlineExecutor, SystemTimer


class Never(DelayedOperation):
    def __init__(self, delay_ms, log):
        super().__init__(delay_ms)
        self.log = log

    def try_complete(self):
        return False

    def on_complete(self):
        self.log.append("expired")

    def on_expiration(self):
        pass


def test_events_run_by_time_and_then_in_the_order_in_which_they_were_made():
    scheduler, log = VirtualScheduler(), []
    scheduler.call_later(5, log.append, "late")
    scheduler.call_later(2, log.append, "first of 2")
    scheduler.call_later(2, log.append, "second of 2")
    scheduler.call_soon(log.append, "now")
    while scheduler.step():
        pass
    assert log == ["now", "first of 2", "second of 2", "late"]
    assert scheduler.clock.now_ms() == 5


def test_a_cancelled_event_neither_runs_nor_moves_the_time():
    scheduler, log = VirtualScheduler(), []
    scheduler.call_later(5, log.append, "gone").cancel()
    assert scheduler.next_due_ms() is None
    assert not scheduler.step()
    assert scheduler.clock.now_ms() == 0


def test_purgatories_expire_in_virtual_time_before_the_events_of_their_millisecond():
    scheduler, log = VirtualScheduler(), []
    timer = SystemTimer("t", scheduler.clock, InlineExecutor())
    purgatory = DelayedOperationPurgatory("p", timer, reaper_enabled=False)
    scheduler.add_purgatory(timer, purgatory)
    purgatory.try_complete_else_watch(Never(30_000, log), ["key"])
    scheduler.call_later(30_000, log.append, "event")
    scheduler.call_later(29_999, log.append, "before")
    scheduler.advance_to(30_000)
    assert log == ["before", "expired", "event"]


def test_advance_to_ends_there_even_when_nothing_is_due():
    scheduler = VirtualScheduler()
    scheduler.advance_to(123)
    assert scheduler.clock.now_ms() == 123


def test_a_removed_purgatory_moves_the_time_no_more():
    scheduler, log = VirtualScheduler(), []
    timer = SystemTimer("t", scheduler.clock, InlineExecutor())
    purgatory = DelayedOperationPurgatory("p", timer, reaper_enabled=False)
    scheduler.add_purgatory(timer, purgatory)
    purgatory.try_complete_else_watch(Never(30_000, log), ["key"])
    assert scheduler.next_due_ms() is not None
    scheduler.remove_purgatory(purgatory)
    assert scheduler.next_due_ms() is None
    scheduler.advance_to(40_000)
    assert log == []
