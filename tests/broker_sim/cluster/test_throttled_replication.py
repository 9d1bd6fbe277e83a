"""Replication at the speed that the configurations of brokers and topics allow."""

import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType

BATCH = 10_000
"""Each fetch gets one batch, so that the quota is asked before each of them."""
CONFIGS = {"replica.fetch.max.bytes": str(BATCH // 2), "default.replication.factor": "2"}
PRODUCE_VERSION = 9
BATCHES = 10


def set_config(cluster, resource_type, name, key, value):
    change = ConfigAlteration(key, AlterOp.SET, value)
    resource = ConfigResource(resource_type, name)
    ((_, outcome),) = cluster.nodes.controller.incremental_alter_configs([(resource, [change])])
    assert outcome.ok


def isr(cluster):
    return set(cluster.nodes.controller.image.topics["t"].partitions[0].isr)


def seconds_to_catch_up(role, rate):
    """Return how long a follower needs for ten batches of 10 000 bytes."""
    with VirtualCluster(2, configs=CONFIGS) as cluster:
        cluster.create_topic("t", assignments={0: [1, 2]})
        cluster.kill(2)
        cluster.run_until(lambda: isr(cluster) == {1})
        client = cluster.client()
        for _ in range(BATCHES):
            request = produce_request(("t", 0), values=[b"x" * BATCH])
            pending = client.send(1, request, PRODUCE_VERSION)
            cluster.run_until(lambda pending=pending: pending.done)
        topic, broker = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
        set_config(cluster, topic, "t", f"{role}.replication.throttled.replicas", "0:1,0:2")
        set_config(cluster, broker, "", f"{role}.replication.throttled.rate", rate)
        cluster.start(2)
        log = cluster.nodes.brokers[2].replica_manager.partitions
        cluster.run_until(lambda: any(p.log.log_end_offset for p in log.values()))
        begun_ms = cluster.now_ms
        cluster.run_until(lambda: isr(cluster) == {1, 2})
        return (cluster.now_ms - begun_ms) / 1_000


@pytest.mark.parametrize(
    ("role", "rate", "at_least", "at_most"),
    [
        ("leader", "1000000000", 0, 0.6),
        ("follower", "1000000000", 0, 0.6),
        # Nine batches after the first one, at a second each; a fetch waits up to half a second.
        ("leader", "10000", 9, 10),
        # A follower that may not fetch looks again after a second.
        ("follower", "10000", 9, 10.5),
    ],
)
def test_follower_outside_the_isr_catches_up_as_fast_as_it_may(role, rate, at_least, at_most):
    assert at_least <= seconds_to_catch_up(role, rate) <= at_most
