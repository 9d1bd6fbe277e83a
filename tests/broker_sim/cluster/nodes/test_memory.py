"""The memory of a cluster's logs, without a cluster."""

import pytest

from broker_sim.cluster.nodes import node as memory
from broker_sim.cluster.nodes.node import LogMemory
from broker_sim.runtime.virtual.run import VirtualScheduler

FREED_BYTES = 16 << 20


@pytest.mark.parametrize(("closes", "times"), [(False, 1), (True, 0)])
def test_what_is_freed_is_given_back_unless_the_cluster_has_ended(closes, times, monkeypatch):
    returned = []
    monkeypatch.setattr(memory, "return_freed_memory", lambda: returned.append(1))
    scheduler = VirtualScheduler()
    log_memory = LogMemory(scheduler, None, lambda: None)
    log_memory.account.grow(FREED_BYTES)
    log_memory.account.grow(-FREED_BYTES)
    if closes:
        log_memory.close()
    scheduler.advance_to(2_000)
    assert len(returned) == times


def test_freed_memory_is_given_back_a_second_after_the_first_was_freed(monkeypatch):
    scheduler, returned_ms = VirtualScheduler(), []
    monkeypatch.setattr(memory, "return_freed_memory", lambda: returned_ms.append(scheduler.clock.now_ms()))
    account = LogMemory(scheduler, None, lambda: None).account
    account.grow(3 * FREED_BYTES)
    for freed_ms in (0, 900, 1_500):
        scheduler.advance_to(freed_ms)
        account.grow(-FREED_BYTES)
    scheduler.advance_to(999 + 1_500)
    assert returned_ms == [1_000]
    scheduler.advance_to(10_000)
    assert returned_ms == [1_000, 2_500]
