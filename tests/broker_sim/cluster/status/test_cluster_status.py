"""The frozen values that `status` and `purgatory` return, and their JSON."""

import json

import pytest

from broker_sim.cluster.status.cluster_status import LinkStatus
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import UnknownBrokerError, UnknownPartitionError, WrongStateError
from broker_sim.handlers.faults import Fault


@pytest.fixture
def cluster():
    made = VirtualCluster(seed=3)
    made.create_topic("orders", 1, 3)
    return made


def test_error_of_an_unknown_name_lists_the_existing_ones(cluster):
    status = cluster.status()
    with pytest.raises(UnknownBrokerError, match="unknown broker 9; brokers: 1, 2, 3"):
        status.broker(9)
    with pytest.raises(UnknownPartitionError, match="unknown topic 'parcels'; topics: orders"):
        status.leader("parcels")
    with pytest.raises(UnknownPartitionError, match="has no partition 1; it has 0"):
        status.isr("orders", 1)


def test_one_broker_and_one_partition_are_as_in_the_status_of_all(cluster):
    cluster.create_topic("parcels", 2, 3)
    status = cluster.status()
    assert cluster.broker(2) == status.broker(2)
    assert cluster.partition("parcels", 1) == status.partition("parcels", 1)
    with pytest.raises(UnknownBrokerError, match="unknown broker 9"):
        cluster.broker(9)
    with pytest.raises(UnknownPartitionError, match="unknown topic 'x'"):
        cluster.partition("x")
    with pytest.raises(UnknownPartitionError, match="has no partition 2; it has 0, 1"):
        cluster.partition("parcels", 2)


def test_leader_and_followers_are_the_assignment(cluster):
    partition = cluster.status().partition("orders")
    assert {partition.leader, *partition.followers} == set(partition.assignment) == {1, 2, 3}


def test_dead_broker_keeps_its_place_among_the_followers(cluster):
    follower = cluster.followers("orders")[0]
    cluster.kill(follower)
    partition = cluster.status().partition("orders")
    assert follower in partition.followers
    assert follower not in {replica.broker for replica in partition.replicas}


def test_values_cannot_be_changed(cluster):
    with pytest.raises(AttributeError):
        cluster.status().broker(1).state = "dead"


def test_partition_without_a_live_leader_has_no_high_watermark(cluster):
    leader = cluster.leader("orders")
    assert cluster.high_watermark("orders") == 0
    cluster.kill(leader)
    partition = cluster.status().partition("orders")
    assert (partition.leader, partition.high_watermark) == (leader, None)
    for where in (cluster, cluster.status()):
        with pytest.raises(WrongStateError, match="orders-0 has no live leader"):
            where.high_watermark("orders")


def test_partition_without_a_leader_has_leader_minus_1_in_json(cluster):
    cluster.create_topic("single", assignments={0: [1]})
    cluster.stop(1)
    partition = cluster.status().partition("single")
    assert partition.leader is None
    assert partition.to_json()["leader"] == -1
    for where in (cluster, cluster.status()):
        with pytest.raises(WrongStateError, match="single-0 has no leader"):
            where.leader("single")


def test_links_with_faults_and_injected_faults_are_shown_until_they_end(cluster):
    cluster.set_link(1, 2, delay_ms=5)
    fault = cluster.inject(Fault(api="Fetch", delay_ms=7, count=2))
    status = cluster.status()
    assert status.links == (LinkStatus(1, 2, drop=False, delay_ms=5),)
    (shown,) = status.faults
    assert (shown.id, shown.api, shown.delay_ms, shown.count) == (fault.id, "FETCH", 7, 2)
    cluster.set_link(1, 2)
    fault.remove()
    assert (cluster.status().links, cluster.status().faults) == ((), ())


def test_parked_operation_is_listed_in_the_purgatory_of_its_broker(cluster):
    follower = cluster.followers("orders")[0]
    request = fetch_request(("orders", 0), max_wait_ms=3_000)
    cluster.client().send(follower, request, FETCH_VERSION)
    cluster.advance(100)
    purgatory = cluster.purgatory().of(follower, "Fetch")
    (parked,) = purgatory.parked
    assert purgatory.to_json()["parked"][0]["waits_for"] == "records"
    assert (parked.operation, parked.age_ms, parked.time_left_ms) == ("DelayedFetch", 100, 2_900)


def test_produce_request_waits_for_the_followers_that_have_not_fetched_it(cluster):
    leader, (paused, killed) = cluster.leader("orders"), cluster.followers("orders")
    cluster.pause(paused)
    cluster.kill(killed)
    cluster.client().send(leader, produce_request(("orders", 0), acks=-1, timeout_ms=5_000), PRODUCE_VERSION)
    cluster.advance(100)
    assert cluster.purgatory().of(leader, "Produce").waits_for == (
        f"broker {paused} (paused) to fetch orders-0 from offset 0 on, broker {killed} (dead) to fetch orders-0",
    )


def test_error_of_an_unknown_purgatory_lists_the_existing_ones(cluster):
    with pytest.raises(LookupError, match=r"no purgatory 'Join'; purgatories: 1 Produce, 1 Fetch"):
        cluster.purgatory().of(1, "Join")


@pytest.mark.parametrize("verb", ["status", "purgatory"])
def test_json_has_plain_values_only(cluster, verb):
    found = getattr(cluster, verb)().to_json()
    assert json.loads(json.dumps(found)) == found


def test_idle_broker_shows_every_purgatory():
    with VirtualCluster(1) as idle:
        names = [purgatory.name for purgatory in idle.purgatory()]
    always = ["Produce", "Fetch", "DeleteRecords", "ElectLeader", "ShareFetch", "Rebalance", "Heartbeat"]
    assert names == [*always, "ThrottledChannel"]
