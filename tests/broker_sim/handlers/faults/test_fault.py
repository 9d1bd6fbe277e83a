import dataclasses

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers import ApiTable
from broker_sim.handlers.faults import Fault, Loss
from broker_sim.handlers.faults.targets import PARTITIONS, TOPICS
from broker_sim.protocol.api_keys import ApiKey

NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"


@pytest.mark.parametrize("name", ["ListOffsets", "list_offsets", "LISTOFFSETS", ApiKey.LIST_OFFSETS])
def test_api_is_known_by_kafkas_name_in_any_case(name):
    assert Fault(api=name, delay_ms=1).api is ApiKey.LIST_OFFSETS


def test_fields_are_normalised_to_typed_values():
    fault = Fault(api="Produce", error=NOT_LEADER)
    assert fault.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fault == Fault(api=ApiKey.PRODUCE, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert Fault(api="Fetch", lose="request").lose is Loss.REQUEST
    assert Fault(api="Fetch", lose=Loss.RESPONSE).lose is Loss.RESPONSE


def test_fault_cannot_be_changed_but_replaced():
    fault = Fault(api="Produce", topic="t", delay_ms=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fault.delay_ms = 2
    assert dataclasses.replace(fault, count=3) == Fault(api="Produce", topic="t", delay_ms=1, count=3)
    assert not hasattr(fault, "__dict__")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"api": "Frobnicate", "delay_ms": 1}, "unknown API 'Frobnicate'; write, for example, Produce"),
        ({"api": "list_ofsets", "delay_ms": 1}, "unknown API 'list_ofsets' .did you mean ListOffsets"),
        ({"api": 0, "delay_ms": 1}, "unknown API 0"),
        ({"api": "LeaderAndIsr", "delay_ms": 1}, "LeaderAndIsr is not served"),
        ({}, "an error, a loss, a delay_ms or a throttle_ms"),
        ({"error": "FROBNICATED"}, "unknown error 'FROBNICATED'; write, for example, NOT_LEADER_OR_FOLLOWER"),
        ({"error": "not_enough_replica"}, "'not_enough_replica' .did you mean NOT_ENOUGH_REPLICAS"),
        ({"error": "NONE"}, "unknown error 'NONE'"),
        ({"error": ErrorCode.NONE}, "unknown error"),
        ({"error": 6}, "unknown error 6"),
        ({"lose": "all"}, "lose must be request or response, not 'all'"),
        ({"error": NOT_LEADER, "lose": "request"}, "cannot have error, delay_ms, throttle_ms"),
        ({"lose": "response", "delay_ms": 1}, "cannot have error, delay_ms, throttle_ms"),
        ({"delay_ms": -1}, "delay_ms must be a number of at least 0, not -1"),
        ({"throttle_ms": 2**31}, "throttle_ms must be at most 2147483647, not 2147483648"),
        ({"delay_ms": 2**31}, "delay_ms must be at most 2147483647, not 2147483648"),
        ({"delay_ms": "1"}, "delay_ms must be a number of at least 0, not '1'"),
        ({"delay_ms": True}, "delay_ms must be a number of at least 0, not True"),
        ({"delay_ms": 1, "count": 0}, "count must be a number of at least 1, not 0"),
        ({"delay_ms": 1, "broker": "1"}, "broker must be a number"),
        ({"delay_ms": 1, "topic": 7}, "topic must be a name, not 7"),
        ({"delay_ms": 1, "partition": 0}, "a partition needs its topic"),
        (
            {"api": "DescribeCluster", "delay_ms": 1, "topic": "t"},
            "DescribeCluster cannot be narrowed to a topic; these can: Produce, Fetch, ",
        ),
        (
            {"api": "Metadata", "delay_ms": 1, "topic": "t", "partition": 0},
            "Metadata cannot be narrowed to a partition; these can: Produce, Fetch, ListOffsets, ",
        ),
    ],
)
def test_impossible_fault_is_refused_in_one_line(fields, reason):
    with pytest.raises(ValueError, match=reason) as refusal:
        Fault(**{"api": "Produce", **fields})
    assert "\n" not in str(refusal.value)


def test_unknown_field_is_refused():
    with pytest.raises(TypeError, match="error_code"):
        Fault(api="Produce", error_code=NOT_LEADER)


@pytest.mark.parametrize(
    ("scope", "named", "other"),
    [
        ({}, [("t", 0), ("u", 7)], []),
        ({"topic": "t"}, [("t", 0), ("t", 7)], [("u", 0), ("", 0)]),
        ({"topic": "t", "partition": 0}, [("t", 0)], [("t", 1), ("u", 0)]),
    ],
)
def test_topic_and_partition_narrow_the_fault_down(scope, named, other):
    fault = Fault(api="Produce", delay_ms=1, **scope)
    assert all(fault.names(*partition) for partition in named)
    assert not any(fault.names(*partition) for partition in other)


def test_every_served_api_can_fail_be_delayed_and_lost():
    for api in ApiKey:
        if ApiTable().get(api):
            Fault(api=api, error="UNKNOWN_SERVER_ERROR")
            Fault(api=api, delay_ms=1)
            Fault(api=api, lose="response")


def test_apis_that_answer_by_partition_or_topic_are_served():
    assert all(ApiTable().get(api) for api in (*PARTITIONS, *TOPICS))
    assert not PARTITIONS.keys() & TOPICS.keys()
