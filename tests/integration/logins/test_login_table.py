"""What a login gets, frame by frame, as Kafka 4.4.0 answered."""

import json

import pytest
from broker_sim_integration.logins.play import earliest
from broker_sim_integration.logins.simulated import play_on_simulated
from broker_sim_integration.logins.table import RECORDING, TABLE
from broker_sim_integration.recorded_cases import read_cases


@pytest.fixture(scope="module")
def outcomes():
    return json.loads(json.dumps(play_on_simulated()))


CLOSED_SOONER = [
    "a frame of a negative size",
    "an empty bare token",
    "a large token",
    "a large bare token",
    "a large handshake",
]
"""Sizes that are refused close the connection at once, in Kafka after the delay (docs/reference/differences.md)."""


@pytest.mark.parametrize("case", [case for case in TABLE if case not in CLOSED_SOONER])
def test_login_gets_kafkas_response(outcomes, case):
    assert outcomes[case] == read_cases(RECORDING)[case]


@pytest.mark.parametrize("case", CLOSED_SOONER)
def test_a_size_that_is_refused_closes_sooner_than_in_kafka(outcomes, case):
    *before, last = read_cases(RECORDING)[case]
    assert last == ["closed", "after the delay"]
    assert outcomes[case] == [*before, ["closed", "at once"]]


def test_before_4_4_any_number_of_tagged_fields_is_taken(outcomes):
    older = json.loads(json.dumps(play_on_simulated("4.3")))
    assert [case for case in TABLE if older[case] != outcomes[case]] == [
        f"10001 tagged fields in the {place} of a token" for place in ("header", "body")
    ]
    assert older["10001 tagged fields in the body of a token"] == outcomes["1 tagged fields in the body of a token"]


def test_the_recording_has_these_cases():
    assert list(read_cases(RECORDING)) == list(TABLE)


LATE = [["refused", "after the delay"], "stays"]
ON_TIME = [["refused", "at once"], "is closed"]
OTHER = [["taken", "at once"], "stays"]


@pytest.mark.parametrize(
    ("plays", "outcome"),
    [
        ([LATE, ON_TIME], ON_TIME),
        ([ON_TIME, LATE], ON_TIME),
        ([LATE, LATE], LATE),
        ([OTHER, LATE], LATE),  # what came at once was another answer
        ([["pause", *ON_TIME], LATE], LATE),  # and here another frame
    ],
)
def test_what_came_at_once_in_one_play_does_so(plays, outcome):
    assert earliest([{"case": play} for play in plays]) == {"case": outcome}


@pytest.mark.real_kafka
@pytest.mark.soak(part="scenarios")
def test_a_real_kafka_still_answers_as_it_was_recorded():
    from broker_sim_integration.logins.real import play_on_real

    assert json.loads(json.dumps(play_on_real())) == read_cases(RECORDING)
