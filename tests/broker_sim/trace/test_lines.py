"""Lines have all fields, in order, whatever texts they hold."""

import json

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.trace.lines import FIELDS, IDS_PER_LIFE, PurgatoryLife, operation_fields, to_lines

KEY = TopicPartition("orders", 0)
ODD_TEXT = 'sch"ön\n'


def life(number=0):
    return PurgatoryLife.of(
        run_id="run", side="sim", broker_id=7, purgatory="Produce", number=number, clock=VirtualClock(wall_start_ms=20)
    )


def line_of(*, keys=(KEY,), api="Produce", client_id="client-1", ended=(None,) * 4, number=0):
    """Return the line of operation 1, at 10 ms of a clock that began at 20 ms."""
    fields = operation_fields(keys, api, client_id, 100)
    event = "parked" if ended[0] is None else "expired"
    (line,) = to_lines([(life(number), 10, event, 1, fields, *ended, 2, 3)])
    return json.loads(line)


COMMON = {
    "ts_ms": 30,
    "run_id": "run",
    "side": "sim",
    "broker": 7,
    "purgatory": "Produce",
    "operation_id": 1,
    "keys": ["orders-0"],
    "api": "Produce",
    "client_id": "client-1",
    "delay_ms": 100,
    "watched": 2,
    "num_delayed": 3,
}


def test_line_of_a_waiting_operation_has_nulls_for_its_end():
    line = line_of()
    unknown = dict.fromkeys(("waited_ms", "lateness_ms", "completed_by", "error_code"))
    assert line == {**COMMON, **unknown, "event": "parked"}
    assert tuple(line) == FIELDS


def test_line_of_an_ended_operation_has_its_wait():
    line = line_of(ended=(103, 3, "timer", ErrorCode.REQUEST_TIMED_OUT))
    end = {"waited_ms": 103, "lateness_ms": 3, "completed_by": "timer", "error_code": 7}
    assert line == {**COMMON, **end, "event": "expired"}
    assert tuple(line) == FIELDS


def test_operation_without_api_and_client_has_nulls():
    line = line_of(api=None, client_id=None)
    assert (line["api"], line["client_id"]) == (None, None)


def test_texts_are_escaped():
    line = line_of(keys=(ODD_TEXT, KEY), client_id=ODD_TEXT, ended=(1, None, ODD_TEXT, None))
    assert line["client_id"] == line["completed_by"] == ODD_TEXT
    assert line["keys"] == [ODD_TEXT, "orders-0"]


def test_equal_keys_of_different_types_keep_their_texts():
    assert line_of(keys=[("orders", 0)])["keys"] == ["('orders', 0)"]
    assert line_of(keys=[KEY])["keys"] == ["orders-0"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_ids_of_each_life_are_apart(number):
    assert line_of(number=number)["operation_id"] == number * IDS_PER_LIFE + 1
