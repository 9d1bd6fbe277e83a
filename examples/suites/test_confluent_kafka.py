"""Thirteen tests of `confluent_billing`, in real time."""

import json

import pytest
from confluent_billing import Worker, bill_of, place

from broker_sim import Fault

pytestmark = pytest.mark.kafka(topics=["orders:2:3:min.insync.replicas=2", "bills:1:3", "refused:1:3"])
APPLES = {"id": 1, "count": 3, "price": 2}
PEARS = {"id": 2, "count": 1, "price": 5}


def bills(kafka):
    return [json.loads(record.value) for record in kafka.records("bills")]


@pytest.mark.parametrize("order", [b"{", b"{}", b"[]", b'{"id": 1, "count": {}, "price": 2}'])
def test_what_is_no_order_has_no_bill(order):
    assert bill_of(order) is None


def test_order_has_the_next_offset(kafka):
    assert place(kafka.bootstrap_servers, APPLES)[1] == 0
    assert place(kafka.bootstrap_servers, PEARS)[1] == 1


def test_orders_of_a_customer_are_in_one_partition(kafka):
    partitions = {place(kafka.bootstrap_servers, APPLES, "ann")[0] for _ in range(3)}
    assert len(partitions) == 1


def test_order_becomes_a_bill(kafka):
    place(kafka.bootstrap_servers, APPLES)
    with Worker(kafka.bootstrap_servers) as worker:
        assert worker.bill() == {"order": 1, "total": 6}
    assert bills(kafka) == [{"order": 1, "total": 6}]


def test_what_is_no_order_is_put_aside(kafka):
    kafka.produce("orders", "nonsense")
    with Worker(kafka.bootstrap_servers) as worker:
        assert worker.bill() is None
    assert [record.value for record in kafka.records("refused")] == [b"nonsense"]


def test_next_worker_goes_on_where_the_last_one_stopped(kafka):
    for order in (APPLES, PEARS):
        place(kafka.bootstrap_servers, order)
        with Worker(kafka.bootstrap_servers) as worker:
            worker.bill()
    assert [bill["order"] for bill in bills(kafka)] == [1, 2]
    assert kafka.group("billing").lag == 0


def test_two_workers_share_the_orders(kafka):
    with Worker(kafka.bootstrap_servers, "one") as one, Worker(kafka.bootstrap_servers, "two") as two:
        for worker in (one, two):
            worker.bill(0.1)
        kafka.wait_until(lambda: [worker.bill(0.05) for worker in (one, two)] and one_each(kafka))
        for number in range(2):
            kafka.produce("orders", json.dumps(APPLES), partition=number)
        assert one.bill() == two.bill() == {"order": 1, "total": 6}


def one_each(kafka):
    members = kafka.group("billing").members
    return sorted(len(member.assignment) for member in members) == [1, 1]


def test_order_waits_for_all_in_sync_replicas(kafka):
    paused = kafka.paused(kafka.followers("orders")[0])
    with paused, pytest.raises(RuntimeError, match="_MSG_TIMED_OUT"):
        place(kafka.bootstrap_servers, APPLES, **{"message.timeout.ms": 300})


def test_order_is_refused_below_the_minimum_of_replicas(kafka):
    kafka.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS"))
    with pytest.raises(RuntimeError, match="NOT_ENOUGH_REPLICAS"):
        place(kafka.bootstrap_servers, APPLES, retries=0)


def test_order_outlives_an_error_that_passes(kafka):
    fault = kafka.inject(Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", count=1))
    assert place(kafka.bootstrap_servers, APPLES)[1] == 0
    assert fault.hits == 1
