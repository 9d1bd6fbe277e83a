"""Which right each API needs: each row as Kafka 4.4.0 answered them."""

import json

import pytest
from broker_sim_integration.acls.play import play
from broker_sim_integration.acls.recorded import RECORDING, read_recording, to_text
from broker_sim_integration.acls.simulated import SimulatedBroker
from broker_sim_integration.acls.table import TABLE

from broker_sim.errors import ErrorCode
from broker_sim.handlers import ApiTable
from broker_sim.protocol.api_keys import ApiKey
from tests.broker_sim.handlers.error_fields import expected_fields

ANYWHERE = "UNKNOWN_SERVER_ERROR"
"""Anything in a broker may fail, at any place."""
NO_FAILURE = ("topic_config_error_code",)
"""The topic is created, and its configurations are not shown."""


@pytest.fixture(scope="module")
def answers():
    """What the simulator answers, by request and rights; all rows take two seconds."""
    with SimulatedBroker() as broker:
        rows = list(play(broker))
    return {(request, rights): json.loads(json.dumps(outcome)) for request, rights, outcome in rows}


@pytest.mark.parametrize("name", [request.name for request in TABLE] + ["rules"])
def test_client_with_these_rights_gets_kafkas_response(answers, name):
    recorded = {rights: outcome for request, rights, outcome in read_recording() if request == name}
    mine = {rights: outcome for (request, rights), outcome in answers.items() if request == name}
    assert recorded
    assert mine == recorded


def test_the_table_has_every_row_of_the_recording(answers):
    assert {(request, rights) for request, rights, _ in read_recording()} == set(answers)
    assert len(answers) > 2_200


def test_every_api_that_is_served_is_in_the_table():
    requested = {request.make(bytes(16)).API_KEY for request in TABLE}
    served = {key for key in ApiKey if ApiTable().get(key)}
    # Who logs in has no rights yet.
    assert served - {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE} == requested


def told_places(outcome, path=""):
    """Return the fields of an outcome that have an error, with the errors' names."""
    if isinstance(outcome, list):
        return {place for each in outcome for place in told_places(each, path)}
    if not isinstance(outcome, dict):
        return set()
    places = set()
    for name, value in outcome.items():
        if name.endswith("error_code") and name not in NO_FAILURE:
            places |= {(f"{path}{name}", value)} - {(f"{path}{name}", "NONE")}
        else:
            places |= told_places(value, f"{path}{name}.")
    return places


def test_every_recorded_error_of_kafka_is_in_the_table_of_errors():
    versions = {request.name: (ApiKey(request.make(bytes(16)).API_KEY), request.version) for request in TABLE}
    misplaced = {
        (name, field, error)
        for name, _, outcome in read_recording()
        if name in versions
        for field, error in told_places(outcome)
        if error != ANYWHERE
        and field.replace("acknowledge_", "") not in expected_fields(*versions[name], ErrorCode[error])
    }
    assert not misplaced


@pytest.mark.real_kafka
@pytest.mark.soak(part="scenarios")
def test_a_real_kafka_still_answers_as_it_was_recorded():
    from broker_sim_integration.acls.real import RealBroker

    with RealBroker() as broker:
        assert to_text(play(broker)) == RECORDING.read_text("utf-8")
