"""What was purged: in the log of a real broker, in the status of a simulated one."""

import pytest
from broker_sim_integration.clients.broker_client import Position
from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from broker_sim_integration.cluster_under_test.purges import purged_in_log
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS, simulated_cluster
from broker_sim_integration.simulator.command import own_command
from broker_sim_integration.simulator.process import SimulatorProcess

LOG = """\
2026-11-22T03:33:16,986 DEBUG [ExpirationReaper-1-Fetch] DelayedOperationPurgatory: Begin purging
2026-11-22T03:33:16,987 DEBUG [x] DelayedOperationPurgatory: Purged 1300 elements from watch lists.
2026-11-22T03:33:17,083 DEBUG [y] DelayedOperationPurgatory: unblocked 100 Fetch operations
[2026-11-22 03:33:18,100] DEBUG Purged 20 elements from watch lists. (org.apache.kafka)
"""


def test_a_real_broker_logs_what_it_purges():
    assert purged_in_log(LOG) == 1320
    assert purged_in_log("nothing of it") == 0


def is_parked(running, topic):
    broker = running.control.get("/purgatory")["brokers"][0]
    (fetches,) = (one for one in broker["purgatories"] if one["name"] == "Fetch")
    return any(topic.name in str(fetch["keys"]) for fetch in fetches["parked"])


@pytest.mark.threads
def test_purges_are_counted_from_the_call_on():
    configs = {"fetch.purgatory.purge.interval.requests": "1"}
    with (
        SimulatorProcess(own_command().arguments, brokers=BROKERS, configs=configs) as running,
        ClusterUnderTest(simulated_cluster(running), "purges") as cluster,
    ):
        topic = cluster.topics.create([cluster.first], partitions=2)
        client, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
        fetches = cluster.purges.counted_of(cluster.first)
        for offset in range(3):
            parked = client.start_fetch(Position(topic, 0, offset=offset), Position(topic, 1), max_wait_ms=20_000)
            cluster.wait_until(lambda: is_parked(running, topic), "the fetch is parked")
            leader.produce(topic, b"completes it", acks=1)
            parked.result()
        cluster.wait_until(lambda: fetches() > 0, "completed fetches are purged")
        assert cluster.purges.counted_of(cluster.first)() < fetches()
