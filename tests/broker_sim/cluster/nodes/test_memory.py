"""The memory of a cluster's logs, without a cluster."""

import pytest

from broker_sim.cluster.nodes import memory
from broker_sim.cluster.nodes.memory import MEMORY_RETURN_MS, LogMemory
from broker_sim.runtime.virtual.scheduler import VirtualScheduler

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
    scheduler.advance_to(2 * MEMORY_RETURN_MS)
    assert len(returned) == times
