"""The observers that write the steps of operations into the trace of a run."""

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, PendingOperation, VirtualTimer

from broker_sim.cluster.virtual.invariants import InvariantViolationError, OperationWatches
from broker_sim.runtime.virtual import VirtualEventLoop


@pytest.fixture
def loop():
    made = VirtualEventLoop(1)
    yield made
    made.close()


@pytest.fixture
def watch(loop):
    return OperationWatches(loop.trace).observer("Fetch", 3, loop.clock)


def test_steps_are_recorded_with_broker_and_purgatory(loop, watch):
    timer = VirtualTimer()
    purgatory = DelayedOperationPurgatory("Fetch", timer, observer=watch)
    purgatory.try_complete_else_watch(PendingOperation(50, lambda _: None), ["orders-0"])
    timer.advance(50)
    purgatory.shutdown()
    lines = list(loop.trace.recent)
    assert [next(s for s in ("tried", "parked", "expired") if s in line) for line in lines] == [
        "tried",
        "parked",
        "expired",
    ]
    assert all("3/Fetch" in line for line in lines)


def test_operation_that_ends_twice_is_noticed(watch):
    operation = PendingOperation(50, lambda _: None)
    watch.tried(operation, ["orders-0"])
    watch.expired(operation, 0)
    with pytest.raises(InvariantViolationError, match=r"of 3/Fetch ended twice"):
        watch.completed(operation, "other")
