"""How the ISR shrinks and grows. Kafka: Partition.maybeShrinkIsr, maybeExpandIsr, AlterPartition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients.broker_client import Append, batch_of
from integration.observations import Observation, at_once, on_event
from integration.reference.cluster import Fault
from integration.scenarios.clusters import (
    FENCED_WITHIN_MS,
    LAG_TIME_MS,
    QUICK_FENCING,
    SESSION_TIMEOUT_MS,
    SHORT_LAG,
)
from integration.scenarios.observe import after, described, fetched, produced
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.stage.stage import Stage

FETCH_WAIT_MS = 500
DEFAULT_SESSION_TIMEOUT_MS = 9000


def shrunk(step: str, moment_ms: float, since_ms: float) -> Observation:
    """Observe that a frozen follower left the ISR by its lag."""
    due = on_event(LAG_TIME_MS, early_ms=FETCH_WAIT_MS + 100, late_ms=LAG_TIME_MS / 2 + 300)
    return Observation(step, elapsed_ms=moment_ms - since_ms, timing=due)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_follower_that_lacks_a_record_leaves_after_the_lag_time(stage: Stage) -> Iterator[Observation]:
    """One unreplicated record and replica.lag.time.max.ms; the leader epoch stays as it is."""
    topic = stage.topic()
    leader = stage.connect(stage.anchor)
    leader.produce(topic, b"replicated")
    yield described("healthy", stage, topic)
    frozen_ms = stage.pause(stage.third)
    leader.produce(topic, b"lacking", acks=1)
    left_ms = stage.until_isr(topic, stage.anchor, stage.second)
    yield shrunk("left", left_ms, frozen_ms)
    yield described("shrunk", stage, topic)
    stage.resume(stage.third)
    stage.until_isr(topic, *stage.brokers)
    yield described("grown", stage, topic)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_frozen_follower_of_an_idle_partition_stays(stage: Stage) -> Iterator[Observation]:
    """It lacks nothing, so it is not behind, however long it is silent (below the session)."""
    idle, busy = stage.topic(settled=False), stage.topic()
    leader = stage.connect(stage.anchor)
    leader.produce(idle, b"replicated")
    leader.produce(busy, b"replicated")
    stage.pause(stage.third)
    leader.produce(busy, b"lacking", acks=1)
    stage.until_isr(busy, stage.anchor, stage.second)
    stage.wait(LAG_TIME_MS)
    yield described("idle", stage, idle)
    yield described("busy", stage, busy)
    yield produced("acks=all to the busy one", leader.produce(busy, b"a"), at_once())


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_follower_frozen_for_less_than_the_lag_time_stays(stage: Stage) -> Iterator[Observation]:
    """It catches up before the leader's next look, and nothing happens to the ISR."""
    topic = stage.topic()
    leader = stage.connect(stage.anchor)
    leader.produce(topic, b"before")
    stage.pause(stage.third)
    leader.produce(topic, b"lacking", acks=1)
    stage.wait(LAG_TIME_MS / 3)
    stage.resume(stage.third)
    stage.until_visible(topic, 2)
    stage.wait(LAG_TIME_MS)
    yield described("afterwards", stage, topic)
    yield produced("acks=all", leader.produce(topic, b"a"), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_fenced_broker_leaves_every_isr(stage: Stage) -> Iterator[Observation]:
    """No heartbeats for broker.session.timeout.ms: out of metadata and of idle partitions' ISR."""
    topic = stage.topic()
    frozen_ms = stage.pause(stage.third)
    left_ms = stage.until_isr(topic, stage.anchor, stage.second)
    due = on_event(SESSION_TIMEOUT_MS, early_ms=600, late_ms=FENCED_WITHIN_MS)
    yield Observation("left", elapsed_ms=left_ms - frozen_ms, timing=due)
    yield described("fenced", stage, topic)
    stage.until_brokers(stage.anchor, stage.second)
    stage.resume(stage.third)
    stage.until_brokers(*stage.brokers)
    stage.until_isr(topic, *stage.brokers)
    yield described("back", stage, topic)


@scenario(needs={Fault.PAUSE})
def with_kafkas_defaults_a_frozen_broker_is_fenced_after_nine_seconds(
    stage: Stage,
) -> Iterator[Observation]:
    """The parked acks=all succeeds then: the fencing shrinks the ISR before the lag of 30 s does."""
    topic = stage.topic()
    leader = stage.connect(stage.anchor)
    leader.produce(topic, b"before")
    frozen_ms = stage.pause(stage.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    left_ms = stage.until_isr(topic, stage.anchor, stage.second)
    reply = parked.result()
    # The last heartbeat was up to 2 s before.
    due = on_event(DEFAULT_SESSION_TIMEOUT_MS, early_ms=2100, late_ms=1500)
    yield Observation("fenced", elapsed_ms=left_ms - frozen_ms, timing=due)
    yield produced("parked", reply, after(reply, left_ms, early_ms=300))


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_killed_follower_leaves_and_returns_with_all_records(stage: Stage) -> Iterator[Observation]:
    """It is fenced like a frozen one, starts again, catches up, and is in the ISR again."""
    topic = stage.topic()
    leader = stage.connect(stage.anchor)
    leader.produce(topic, b"before")
    stage.kill(stage.third)
    leader.produce(topic, b"while it was dead", acks=1)
    stage.until_isr(topic, stage.anchor, stage.second)
    yield described("without it", stage, topic)
    yield produced("acks=all without it", leader.produce(topic, b"two replicas"), at_once())
    stage.start(stage.third)
    stage.until_isr(topic, *stage.brokers)
    yield described("with it again", stage, topic)
    yield produced("acks=all with it", leader.produce(topic, b"three again"))
    stage.until_serving(stage.third)
    copy = stage.connect(stage.third)
    yield fetched("its own copy", copy.fetch(topic, max_wait_ms=5000, min_bytes=280))
