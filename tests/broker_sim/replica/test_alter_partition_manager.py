"""ISR changes are proposed again after a refusal, and counted as Kafka's `IsrShrinksPerSec` counts them."""

from typing import NamedTuple

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.replica.alter_partition_manager import RETRY_BACKOFF_MS, AlterPartitionManager, IsrDecision
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler


class Proposer:
    """Stands for a partition: it proposes again whatever is refused."""

    def fail_alter_partition(self, pending, error_code):
        return True


@pytest.mark.parametrize(
    "answer", [(ErrorCode.REQUEST_TIMED_OUT, ()), (ErrorCode.NONE, [IsrDecision(ErrorCode.INVALID_UPDATE_VERSION)])]
)
def test_rejected_isr_change_is_proposed_again_after_50_ms(answer):
    scheduler = VirtualScheduler()
    sent = []

    def send(batch, on_answer):
        sent.append(scheduler.clock.now_ms())
        on_answer(*answer)

    AlterPartitionManager(Process("broker-1", scheduler), send).submit(Proposer(), None)
    scheduler.advance_to(2 * RETRY_BACKOFF_MS)
    assert sent == [0, RETRY_BACKOFF_MS, 2 * RETRY_BACKOFF_MS]


class Changes(NamedTuple):
    """The numbers of changes of ISRs by a broker."""

    shrinks: int = 0
    expands: int = 0
    failed: int = 0


def counts(bench):
    manager = bench.cluster.nodes.brokers[1].alter_partition
    return Changes(manager.isr_shrinks, manager.isr_expands, manager.failed_isr_updates)


def test_follower_that_leaves_and_returns_counts_as_a_shrink_and_an_expansion(make_bench):
    """The lag ends long before the session: a fenced follower would leave without the leader."""
    bench = make_bench(configs={"replica.lag.time.max.ms": "2000"})
    bench.produced()
    assert counts(bench) == Changes()
    bench.cluster.pause(2)
    bench.wait(bench.produce(timeout_ms=30_000))
    assert bench.isr() == {1, 3}
    assert counts(bench) == Changes(shrinks=1)
    bench.cluster.resume(2)
    bench.cluster.run_until(lambda: bench.isr() == {1, 2, 3})
    bench.settle()
    assert counts(bench) == Changes(shrinks=1, expands=1)


def test_refused_change_counts_as_failed(bench):
    """A disconnected leader proposes a change, but the controller has elected another one."""
    bench.produced()
    bench.cluster.disconnect(1)
    bench.wait(bench.produce(timeout_ms=40_000))
    bench.cluster.run_until(lambda: bench.leader() not in (1, -1))
    bench.cluster.reconnect(1)
    bench.settle()
    shrinks, expands, failed = counts(bench)
    assert (shrinks, expands) == (0, 0)
    assert failed > 0
