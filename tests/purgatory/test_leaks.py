"""Nothing keeps operations that have ended, and what is allocated does not grow with their number."""

import gc
import sys
import weakref

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, VirtualTimer

OPERATIONS = 2_000


@pytest.fixture
def timer():
    return VirtualTimer()


@pytest.fixture
def purgatory(timer):
    return DelayedOperationPurgatory("test", timer, purge_interval=100)


def _complete(purgatory, timer, operations):
    for op in operations:
        op.completable = True
    purgatory.check_and_complete("a")
    purgatory.check_and_complete("b")


def _expire(purgatory, timer, operations):
    timer.advance(1_000)
    purgatory.advance_clock(0)


def _cancel(purgatory, timer, operations):
    purgatory.cancel_for_key("a")
    purgatory.cancel_for_key("b")


def _force_and_purge(purgatory, timer, operations):
    for op in operations:
        op.force_complete()
    purgatory.advance_clock(0)


ENDS = [_complete, _expire, _cancel, _force_and_purge]


@pytest.mark.parametrize("end", ENDS)
def test_an_operation_that_has_ended_is_freed_at_once_without_the_collector(purgatory, timer, operation, end):
    class Traced(operation):
        pass  # without __slots__ it can be referred to weakly

    operations = [Traced(500) for _ in range(200)]
    traces = [weakref.ref(op) for op in operations]
    for op in operations:
        purgatory.try_complete_else_watch(op, ("a", "b"))
    del op
    gc.disable()
    try:
        end(purgatory, timer, operations)
        operations.clear()
        assert [trace for trace in traces if trace() is not None] == []
    finally:
        gc.enable()


@pytest.mark.usefixtures("collects_little")
def test_memory_does_not_grow_with_the_operations_that_have_passed(purgatory, timer, operation):
    def one_round():
        for end in ENDS:
            operations = [operation(500) for _ in range(OPERATIONS)]
            for op in operations:
                purgatory.try_complete_else_watch(op, ("a", "b"))
            end(purgatory, timer, operations)

    for _ in range(2):  # free lists and the like come to be
        one_round()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(5):
        one_round()
    gc.collect()
    # One block kept of each operation that ends in one of the four ways would be five times as many. Other
    # threads of the process have a few hundred more or fewer than before.
    assert sys.getallocatedblocks() - before < OPERATIONS
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)
