"""How the ISR shrinks and grows. Kafka: Partition.maybeShrinkIsr, maybeExpandIsr, AlterPartition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.broker_verbs import Fault
from integration.clients.broker_client import Append, batch_of
from integration.observations import Observation, at_once, on_event
from integration.scenarios.helpers.broker_configs import (
    FENCED_WITHIN_MS,
    LAG_TIME_MS,
    QUICK_FENCING,
    SESSION_TIMEOUT_MS,
    SHORT_LAG,
)
from integration.scenarios.helpers.observe import after, described, fetched, produced
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.cluster_under_test.cluster_under_test import ClusterUnderTest

FETCH_WAIT_MS = 500
DEFAULT_SESSION_TIMEOUT_MS = 9000


def shrunk(step: str, moment_ms: float, since_ms: float) -> Observation:
    """Observe that a paused follower left the ISR by its lag."""
    due = on_event(LAG_TIME_MS, early_ms=FETCH_WAIT_MS + 100, late_ms=LAG_TIME_MS / 2 + 300)
    return Observation(step, elapsed_ms=moment_ms - since_ms, timing=due)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_follower_that_lacks_a_record_leaves_after_the_lag_time(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """One unreplicated record and replica.lag.time.max.ms; the leader epoch does not change."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"replicated")
    yield described("healthy", cluster, topic)
    paused_ms = cluster.faults.pause(cluster.third)
    leader.produce(topic, b"lacking", acks=1)
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield shrunk("left", left_ms, paused_ms)
    yield described("shrunk", cluster, topic)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("grown", cluster, topic)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_frozen_follower_of_an_idle_partition_stays(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It lacks no record, so it is not behind, however long it is paused (below its session)."""
    idle, busy = cluster.topics.create(settled=False), cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(idle, b"replicated")
    leader.produce(busy, b"replicated")
    cluster.faults.pause(cluster.third)
    leader.produce(busy, b"lacking", acks=1)
    cluster.wait_until.isr(busy, cluster.first, cluster.second)
    cluster.wait(LAG_TIME_MS)
    yield described("idle", cluster, idle)
    yield described("busy", cluster, busy)
    yield produced("acks=all to the busy one", leader.produce(busy, b"a"), at_once())


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_follower_frozen_for_less_than_the_lag_time_stays(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It catches up before the leader's next check, and the ISR does not change."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"lacking", acks=1)
    cluster.wait(LAG_TIME_MS / 3)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.visible(topic, 2)
    cluster.wait(LAG_TIME_MS)
    yield described("afterwards", cluster, topic)
    yield produced("acks=all", leader.produce(topic, b"a"), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_fenced_broker_leaves_every_isr(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """No heartbeats for broker.session.timeout.ms: out of metadata and idle partitions' ISR."""
    topic = cluster.topics.create()
    paused_ms = cluster.faults.pause(cluster.third)
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    due = on_event(SESSION_TIMEOUT_MS, early_ms=600, late_ms=FENCED_WITHIN_MS)
    yield Observation("left", elapsed_ms=left_ms - paused_ms, timing=due)
    yield described("fenced", cluster, topic)
    cluster.wait_until.brokers(cluster.first, cluster.second)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.brokers(*cluster.brokers)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("back", cluster, topic)


@scenario(needs={Fault.PAUSE})
def with_kafkas_defaults_a_frozen_broker_is_fenced_after_nine_seconds(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The parked acks=all then succeeds: fencing shrinks the ISR before the lag of 30 s does."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    paused_ms = cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    reply = parked.result()
    # The last heartbeat was up to 2 s before.
    due = on_event(DEFAULT_SESSION_TIMEOUT_MS, early_ms=2100, late_ms=1500)
    yield Observation("fenced", elapsed_ms=left_ms - paused_ms, timing=due)
    yield produced("parked", reply, after(reply, left_ms, early_ms=300))


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_killed_follower_leaves_and_returns_with_all_records(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It is fenced like a paused one, starts again, catches up, and is in the ISR again."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.kill(cluster.third)
    leader.produce(topic, b"while it was dead", acks=1)
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield described("without it", cluster, topic)
    yield produced("acks=all without it", leader.produce(topic, b"two replicas"), at_once())
    cluster.faults.start(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("with it again", cluster, topic)
    yield produced("acks=all with it", leader.produce(topic, b"three again"))
    cluster.wait_until.serving(cluster.third)
    copy = cluster.connect(cluster.third)
    yield fetched("its own copy", copy.fetch(topic, max_wait_ms=5000, min_bytes=280))
