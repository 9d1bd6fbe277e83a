"""The faults that hit a request, and the state of their handles."""

import random
import threading

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers import RequestContext
from broker_sim.handlers.faults import Fault, FaultInjector
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
CORRUPT = ErrorCode.CORRUPT_MESSAGE


def produce_request(*partitions):
    data = messages.ProduceRequest.PartitionProduceData
    topic = messages.ProduceRequest.TopicProduceData(
        name="t", partition_data=[data(index=number) for number in partitions]
    )
    return messages.ProduceRequest(topic_data=[topic] if partitions else [])


@pytest.fixture
def faults():
    return FaultInjector(random.Random(1))


@pytest.fixture
def hit(broker, faults):
    """Ask what hits a request that comes to broker 1."""

    def ask(request, version=9):
        context = RequestContext(broker, None, ApiKey(request.API_KEY), version, "test")
        return faults.hit(request, context)

    return ask


def errors(hits, *partitions):
    return [hits.error_for("t", number) for number in partitions]


def test_fault_without_limit_hits_until_it_is_removed(hit, faults):
    injected = faults.inject(Fault(api="Produce", error=NOT_LEADER))
    for _ in range(3):
        assert errors(hit(produce_request(0)), 0) == [NOT_LEADER]
    assert (injected.hits, injected.remaining) == (3, None)
    injected.remove()
    injected.remove()
    assert hit(produce_request(0)) is None
    assert injected.hits == 3


def test_count_limits_the_requests_that_are_hit_and_then_the_fault_ends(hit, faults):
    injected = faults.inject(Fault(api="Produce", error=NOT_LEADER, count=2))
    assert injected.remaining == 2
    assert errors(hit(produce_request(0, 1)), 0, 1) == [NOT_LEADER, NOT_LEADER]
    assert (injected.hits, injected.remaining) == (1, 1)
    assert errors(hit(produce_request(0)), 0) == [NOT_LEADER]
    assert (injected.hits, injected.remaining) == (2, 0)
    assert hit(produce_request(0)) is None
    assert faults.injected == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"api": "Fetch"},
        {"api": "Produce", "broker": 2},
        {"api": "Produce", "topic": "u"},
        {"api": "Produce", "topic": "t", "partition": 1},
    ],
)
def test_other_requests_are_not_hit_and_not_counted(hit, faults, fields):
    injected = faults.inject(Fault(**fields, error=NOT_LEADER, count=1))
    assert hit(produce_request(0)) is None
    assert injected.hits == 0
    assert faults.injected == (injected,)


def test_first_matching_fault_hits_a_partition_and_only_it_counts(hit, faults):
    one = faults.inject(Fault(api="Produce", topic="t", partition=1, error=CORRUPT))
    every = faults.inject(Fault(api="Produce", error=NOT_LEADER))
    late = faults.inject(Fault(api="Produce", topic="t", error=CORRUPT))
    assert errors(hit(produce_request(0, 1)), 0, 1) == [NOT_LEADER, CORRUPT]
    assert [injected.hits for injected in (one, every, late)] == [1, 1, 0]
    assert errors(hit(produce_request(1)), 1) == [CORRUPT]
    assert [injected.hits for injected in (one, every, late)] == [2, 1, 0]


def test_fault_that_delays_a_partition_keeps_later_errors_from_it(hit, faults):
    faults.inject(Fault(api="Produce", topic="t", partition=0, delay_ms=5))
    faults.inject(Fault(api="Produce", topic="t", error=NOT_LEADER))
    assert errors(hit(produce_request(0, 1)), 0, 1) == [ErrorCode.NONE, NOT_LEADER]


def test_where_the_connection_breaks_only_the_loss_counts(hit, faults):
    error = faults.inject(Fault(api="Produce", topic="t", partition=0, error=NOT_LEADER, count=1))
    loss = faults.inject(Fault(api="Produce", lose="response"))
    assert errors(hit(produce_request(0, 1)), 0, 1) == [ErrorCode.NONE, ErrorCode.NONE]
    assert (error.hits, loss.hits) == (0, 1)


def test_request_without_topics_is_hit_by_faults_without_a_topic(hit, faults):
    faults.inject(Fault(api="Produce", topic="t", delay_ms=1))
    assert hit(produce_request()) is None
    faults.inject(Fault(api="Produce", delay_ms=1))
    assert hit(produce_request())


def test_error_that_is_not_returned_is_not_counted(hit, faults):
    injected = faults.inject(Fault(api="Produce", error=NOT_LEADER, count=1))
    assert hit(produce_request(0))
    assert (injected.hits, injected.remaining) == (0, 1)


def test_fault_ended_by_another_request_returns_no_error(hit, faults):
    injected = faults.inject(Fault(api="Produce", error=NOT_LEADER, count=1))
    first, second = hit(produce_request(0, 1)), hit(produce_request(0))
    assert errors(first, 0, 1) == [NOT_LEADER, NOT_LEADER]
    assert errors(second, 0) == [ErrorCode.NONE]
    assert injected.hits == 1


def test_version_that_cannot_return_the_error_is_not_hit(hit, faults):
    faults.inject(Fault(api="Produce", error="UNKNOWN_TOPIC_ID"))
    assert hit(produce_request(0), 12) is None
    assert errors(hit(produce_request(0), 13), 0) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_older_version_gets_its_own_error(hit, faults):
    faults.inject(Fault(api="Produce", error="TRANSACTION_ABORTABLE"))
    assert errors(hit(produce_request(0), 10), 0) == [ErrorCode.INVALID_TXN_STATE]
    assert errors(hit(produce_request(0), 11), 0) == [ErrorCode.TRANSACTION_ABORTABLE]


def test_heal_ends_one_fault_by_its_id_or_all(hit, faults):
    first, second, third = (faults.inject(Fault(api="Produce", delay_ms=1)) for _ in range(3))
    assert [fault.id for fault in faults.injected] == [1, 2, 3]
    faults.heal(second.id)
    assert faults.injected == (first, third)
    with pytest.raises(LookupError, match="unknown fault 2"):
        faults.heal(second.id)
    faults.heal()
    assert faults.injected == ()
    assert faults.inject(Fault(api="Produce", delay_ms=1)).id == 4


def test_handle_shows_the_fault_as_json(hit, faults):
    injected = faults.inject(
        Fault(api="Produce", broker=1, topic="t", partition=0, error=NOT_LEADER, delay_ms=5, count=3)
    )
    hit(produce_request(0)).error_for("t", 0)
    assert injected.to_json() == {
        "id": 1,
        "api": "PRODUCE",
        "broker": 1,
        "topic": "t",
        "partition": 0,
        "error": "NOT_LEADER_OR_FOLLOWER",
        "lose": None,
        "delay_ms": 5,
        "throttle_ms": 0,
        "hold": False,
        "held": 0,
        "damage": None,
        "only_counts": False,
        "client_id": None,
        "group": None,
        "transactional_id": None,
        "skip": 0,
        "probability": 1.0,
        "count": 2,
        "hits": 1,
        "hook": None,
    }


@pytest.mark.threads
def test_faults_may_be_injected_and_ended_on_other_threads(hit, faults):
    stays = faults.inject(Fault(api="Produce", topic="t", error=NOT_LEADER))

    def change():
        for _ in range(500):
            faults.inject(Fault(api="Produce", error=CORRUPT)).remove()

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    asked = 0
    while any(thread.is_alive() for thread in threads) or asked < 500:
        assert errors(hit(produce_request(0)), 0) == [NOT_LEADER]
        asked += 1
    for thread in threads:
        thread.join()
    assert faults.injected == (stays,)
    assert stays.hits == asked
