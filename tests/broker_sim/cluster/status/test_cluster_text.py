"""The state of a cluster in words."""

import pytest

from broker_sim import Fault, VirtualCluster
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request

RELEASE = 2
SLOW = {"replica.lag.time.max.ms": 60_000, "broker.session.timeout.ms": 60_000}


@pytest.fixture
def cluster():
    cluster = VirtualCluster(configs=SLOW)
    cluster.keep_requests()
    cluster.create_topic("orders", 1, 3)
    return cluster


def lines(cluster):
    return cluster.describe().splitlines()


def send(cluster, **arguments):
    request = produce_request(("orders", 0), acks=-1, timeout_ms=30_000, **arguments)
    return cluster.client().send(cluster.leader("orders"), request, PRODUCE_VERSION)


def test_parked_request_names_whom_it_waits_for_and_is_not_answered(cluster):
    leader = cluster.leader("orders")
    paused, other = cluster.followers("orders")
    cluster.pause(paused)
    send(cluster)
    cluster.advance(3_000)
    told = lines(cluster)
    assert f"  {paused} is paused" in told
    (partition,) = [line for line in told if line.startswith("  orders-0: ")]
    assert f"leader {leader}, epoch 0, ISR " in partition
    assert "high watermark 0" in partition
    assert f"{leader} to 1" in partition
    assert f"{other} to 1" in partition
    assert f"{paused} (paused) to 0" in partition
    assert (
        f"  Produce of broker {leader}: orders-0 waits for broker {paused} (paused) to fetch orders-0 "
        "from offset 0 on, 3000 of 30000 ms are over"
    ) in told
    (request,) = [line for line in told if " s Produce" in line]
    assert request.endswith(f" s Produce orders-0 to broker {leader}, not answered yet")


def test_answers_tell_their_errors_and_injected_faults_and_links_are_shown(cluster):
    cluster.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS"))
    cluster.set_link(1, 2, delay_ms=7)
    send(cluster)
    cluster.advance(100)
    text = cluster.describe()
    assert "answered after 0 ms: NOT_ENOUGH_REPLICAS" in text
    assert "  an injected fault has hit 1 requests of PRODUCE" in text
    assert "  the link from 1 to 2 takes 7 ms" in text


def test_partitions_with_something_wrong_come_first_and_internal_ones_never(cluster):
    cluster.create_topic("fine", 20, 1)
    cluster.create_topic("__consumer_offsets", 3, 3)
    cluster.kill(cluster.followers("orders")[0])
    cluster.advance(61_000)
    told = lines(cluster)
    partitions = told[told.index("partitions:") + 1 :][:13]
    (mine,) = [line for line in partitions if line.startswith("  orders-0: ")]
    assert "no leader" in partitions[0] or mine is partitions[0]
    assert partitions[-1] == "  and 9 more"
    assert not any(line.startswith("  __") for line in told)


def test_only_the_last_requests_of_a_client_are_shown(cluster):
    client = cluster.client()
    for _ in range(60):
        client.send(1, produce_request(("orders", 0)), PRODUCE_VERSION)
        cluster.advance(10)
    told = lines(cluster)
    begin = next(n for n, line in enumerate(told) if line.startswith("last requests of"))
    assert len(told) - begin == 6


def test_text_of_a_share_group_has_its_records_in_flight(shares):
    for order in ("apples", "pears", "plums"):
        shares.cluster.produce("orders", order)
    member = shares.member("holder").join()
    assert not any("in flight" in line for line in lines(shares.cluster))
    assert member.fetch(max_records=3) == [(0, 2, 1)]
    member.acknowledge(1, 1, RELEASE)
    (group,) = [line for line in lines(shares.cluster) if line.startswith("  billing: ")]
    assert group.endswith(
        "lag 3: orders-0 0 of 3, orders-1 None of 0; in flight of orders-0: 2 acquired, 1 available,"
        " delivered up to 1 times"
    )
