"""Kafka's metrics of a cluster; the control port's tests have their names and labels."""

import pytest

from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, fetch_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.protocol import messages
from broker_sim.share.partition.record_state import AcknowledgeType
from broker_sim.share.share_state import SharePartitionKey
from tests.broker_sim.share.named_values import acquired

UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
LEADERS = "kafka_server_replicamanager_leadercount"
SHRINKS = "kafka_server_replicamanager_isrshrinks_total"
FENCED = "kafka_controller_kafkacontroller_fencedbrokercount"


@pytest.fixture
def cluster():
    made = VirtualCluster(seed=8)
    made.create_topic("orders", assignments={0: [1, 2, 3], 1: [1, 3, 2]})
    return made


@pytest.fixture
def metrics(cluster):
    """Return a function that returns the values by name and labels."""

    def read():
        lines = [line for line in cluster.metrics().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    return read


def test_leader_counts_the_partitions_whose_isr_has_shrunk(cluster, metrics):
    assert metrics()[f'{UNDER_REPLICATED}{{broker="1"}}'] == 0
    cluster.pause(3)
    cluster.run_until(lambda: 3 not in cluster.isr("orders") + cluster.isr("orders", 1))
    cluster.advance(0)  # the leader hears of it
    found = metrics()
    assert found[f'{LEADERS}{{broker="1"}}'] == 2
    assert found[f'{UNDER_REPLICATED}{{broker="1"}}'] == 2
    assert found[FENCED] == 1


def test_dead_broker_has_a_state_and_no_other_metrics(cluster, metrics):
    cluster.kill(2)
    found = metrics()
    of_broker_2 = {name: value for name, value in found.items() if 'broker="2"' in name}
    assert of_broker_2.pop('broker_sim_broker_state{broker="2",state="dead"}') == 1
    assert {name.partition("{")[0] for name in of_broker_2} <= {
        "broker_sim_broker_state",
        "kafka_controller_kafkacontroller_timesincelastheartbeatms",
    }


def test_coordinator_counts_groups_and_offsets(make_user):
    user = make_user(brokers=1, offsets_retention_minutes=1)
    user.commit("g", {0: 5, 1: 7})
    user.commit("h", {0: 5})
    user.delete_offsets("h", [0])
    told = messages.StreamsGroupHeartbeatRequest
    topology = told.Topology(0, [told.Subtopology("0", ["t"])])
    nothing = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joins = told("s", "m", 0, rebalance_timeout_ms=1_000, topology=topology, **nothing)
    assert not user.ask(joins, 0, 1).error_code
    lines = user.cluster.metrics().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    metadata = "kafka_coordinator_group_groupmetadatamanager"
    coordinator = "kafka_server_group_coordinator_metrics"
    assert float(found[f'{metadata}_numoffsets{{broker="1"}}']) == 2
    assert float(found[f'{metadata}_numgroupsempty{{broker="1"}}']) == 2
    assert float(found[f'{metadata}_numgroupsstable{{broker="1"}}']) == 0
    kinds = (
        f'{coordinator}_group_count{{broker="1",protocol="{kind}"}}'
        for kind in ("classic", "consumer", "share", "streams")
    )
    assert [float(found[kind]) for kind in kinds] == [2, 0, 0, 1]
    assert float(found[f'{metadata}_numgroups{{broker="1"}}']) == 2
    states = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead")
    of_streams = (f'{coordinator}_streams_group_count{{broker="1",state="{state}"}}' for state in states)
    # It waits for more members.
    assert [float(found[name]) for name in of_streams] == [0, 0, 1, 0, 0, 0]
    assert float(found[f'{coordinator}_streams_group_rebalance_count_total{{broker="1"}}']) == 1
    for name in ("group_completed_rebalance", "consumer_group_rebalance"):
        assert float(found[f'{coordinator}_{name}_count_total{{broker="1"}}']) == 0
    assert float(found[f'{coordinator}_offset_commit_count_total{{broker="1"}}']) == 3
    assert float(found[f'{coordinator}_offset_deletion_count_total{{broker="1"}}']) == 1
    assert float(found[f'{coordinator}_offset_expiration_count_total{{broker="1"}}']) == 0


def test_fetch_sessions_are_counted(cluster, metrics):
    broker = cluster.nodes.brokers[1]
    cache = broker.fetch_manager.cache
    name = "kafka_server_fetchsessioncache_"
    assert metrics()[f'{name}numincrementalfetchsessions{{broker="1"}}'] == 0
    client = cluster.client()
    request = fetch_request(("orders", 0), ("orders", 1), max_wait_ms=0)
    request.session_epoch = 0
    answer = client.send(1, request, FETCH_VERSION)
    cluster.run_until(lambda: answer.done)
    cache.next_shard().evictions = 3
    found = metrics()
    assert found[f'{name}numincrementalfetchsessions{{broker="1"}}'] == 1
    assert found[f'{name}numincrementalfetchpartitionscached{{broker="1"}}'] == 2
    assert found[f'{name}incrementalfetchsessionevictions_total{{broker="1"}}'] == 3


def test_share_partitions_are_counted(cluster, metrics):
    broker = cluster.nodes.brokers[1]
    manager = broker.share_partitions
    topic_id = broker.image.topics["orders"].topic_id
    begun = []
    key = SharePartitionKey("share", topic_id, 0)
    broker.persister.initialize_state(key, 1, 0, begun.append)
    cluster.run_until(lambda: begun)
    request = messages.ShareFetchRequest(
        group_id="share",
        member_id="member",
        min_bytes=1,
        max_wait_ms=5_000,
        max_records=10,
        batch_size=10,
        topics=[messages.ShareFetchRequest.FetchTopic(topic_id, [messages.ShareFetchRequest.FetchPartition(0)])],
    )
    answer = cluster.client().send(1, request, 2)
    cluster.run_until(lambda: answer.done)
    manager.acknowledged_records[AcknowledgeType.ACCEPT] = 4
    manager.sessions.evictions = 3
    (share_partition,) = manager.partitions
    share_partition.lock_timeouts = 2
    found = metrics()
    session = "kafka_server_sharesessioncache_"
    assert found[f'{session}sharesessionscount{{broker="1"}}'] == 1
    assert found[f'{session}sharepartitionscount{{broker="1"}}'] == 1
    assert found[f'{session}sharesessionevictions_total{{broker="1"}}'] == 3
    labels = '{broker="1",group="share",partition="0",topic="orders"}'
    partition = "kafka_server_sharepartitionmetrics_"
    assert found[f"{partition}inflightmessagecount{labels}"] == 0
    assert found[f"{partition}inflightbatchcount{labels}"] == 0
    assert found[f"{partition}acquisitionlocktimeout_total{labels}"] == 2
    group = "kafka_server_sharegroupmetrics_recordacknowledgements_total"
    assert found[f'{group}{{acktype="Accept",broker="1"}}'] == 4
    assert f'{group}{{acktype="Gap",broker="1"}}' not in found
    assert found['kafka_server_delayedsharefetchmetrics_expires_total{broker="1"}'] == 1


def test_share_groups_and_changes_of_their_state_are_counted(shares):
    shares.cluster.produce("orders", "an order")
    member = shares.member("holder").join()
    coordinator = shares.cluster.nodes.brokers[1].share_coordinator

    def found():
        lines = shares.cluster.metrics().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    groups = "kafka_server_group_coordinator_metrics_"
    writes = 'kafka_server_share_coordinator_metrics_write_total{broker="1"}'
    before = found()
    assert before[f'{groups}group_count{{broker="1",protocol="share"}}'] == 1
    assert before[f'{groups}share_group_count{{broker="1",state="Stable"}}'] == 1
    assert before[f'{groups}share_group_count{{broker="1",state="Empty"}}'] == 0
    assert before[f'{groups}consumer_group_count{{broker="1",state="Stable"}}'] == 0
    # One when the member came, one when the share partitions had their state.
    assert before[f'{groups}share_group_rebalance_count_total{{broker="1"}}'] == 2
    assert member.fetch() == [acquired(0, 0)]
    assert found()[writes] == 0
    member.acknowledge(0, 0, 1)
    assert found()[writes] == 1
    pruned = "kafka_server_share_coordinator_metrics_last_pruned_offset"
    assert not any(name.startswith(pruned) for name in found())
    (shard, *_) = [each.shard for each in coordinator.runtime.loaded()]
    shard.pruned_offset = 7
    labels = f'{{broker="1",partition="{shard.partition}",topic="__share_group_state"}}'
    assert found()[f"{pruned}{labels}"] == 7
