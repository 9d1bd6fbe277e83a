"""Throttled replication (KIP-73): partitions that a leader leaves out. Kafka: ReplicationQuotaManager, readFromLog.

The scenario fetches like a follower that has left the ISR, because the time at which a real one catches up
depends on its own rhythm. The rate is measured over eleven samples of a second, so a rate far above a limit
stays above it for many seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients import admin_requests
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import SHORT_LAG
from broker_sim_integration.scenarios.helpers.observe import concluded, fetched
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

BROKER: Final = 4
SET, DELETE = 0, 1
RATE: Final = "leader.replication.throttled.rate"
REPLICAS: Final = "leader.replication.throttled.replicas"
VALUE: Final = b"x" * 10_000
WAIT_MS: Final = 500
"""Wait in ms of a follower's fetch."""


def set_rate(cluster: ClusterUnderTest, rate: int | None) -> None:
    """Set the rate at which the first broker sends to throttled replicas, or remove it if None."""
    operation = DELETE if rate is None else SET
    change = (RATE, operation, None if rate is None else str(rate))
    reply = admin_requests.alter(cluster.clients.ask(cluster.first), (BROKER, str(cluster.first), [change]))
    assert reply.message.responses[0].error_code == 0, reply.message


@scenario(topology="2 partitions x 2 replicas", configs=SHORT_LAG, needs={Fault.PAUSE})
def a_throttled_follower_outside_the_isr_gets_no_records(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Above the quota its fetches time out and return only the high watermark.

    Other fetchers get the records, and so does this one from a partition that is not throttled, and without a limit.
    """
    replicas = [cluster.first, cluster.second]
    throttled, other = cluster.topics.create(replicas), cluster.topics.create(replicas)
    cluster.topics.alter(throttled, **{REPLICAS: f"0:{cluster.first}"})
    set_rate(cluster, 100)
    cluster.on_close(lambda: set_rate(cluster, None))
    Publication(cluster).wait()
    cluster.faults.pause(cluster.second)
    leader = cluster.connect(cluster.first)
    for topic in (throttled, other):
        leader.produce(topic, VALUE, acks=1)
    for topic in (throttled, other):
        cluster.wait_until.isr(topic, cluster.first)

    follower = cluster.connect(cluster.first)
    # The first fetch exceeds the quota, unless the paused follower's own fetch has completed in the meantime.
    follower.fetch_as_replica(throttled, cluster.second)
    for attempt in range(2):
        reply = follower.fetch_as_replica(throttled, cluster.second)
        yield fetched("above", reply, at_timeout(WAIT_MS), attempt=attempt)
    reply = follower.fetch_as_replica(other, cluster.second)
    yield fetched("a partition that is not throttled", reply, at_once())
    yield fetched("a consumer", leader.fetch(throttled), at_once())

    set_rate(cluster, None)

    def gets_records() -> bool:
        reply = follower.fetch_as_replica(throttled, cluster.second)
        return bool(reply.message.responses[0].partitions[0].records)

    cluster.wait_until(gets_records, "the limit is gone")
    yield concluded("without a limit", gets_records=True)
