"""Which right each API needs: each row as Kafka 4.3.1 answered them."""

import json

import pytest
from broker_sim_integration.acls.play import play
from broker_sim_integration.acls.recorded import RECORDING, read_recording, to_text
from broker_sim_integration.acls.simulated import SimulatedBroker
from broker_sim_integration.acls.table import TABLE

from broker_sim.handlers import ApiTable
from broker_sim.protocol.api_keys import ApiKey


@pytest.fixture(scope="module")
def answers():
    """What the simulator answers, by request and rights; all rows take two seconds."""
    with SimulatedBroker() as broker:
        rows = list(play(broker))
    return {(asked, rights): json.loads(json.dumps(outcome)) for asked, rights, outcome in rows}


@pytest.mark.parametrize("name", [asked.name for asked in TABLE] + ["rules"])
def test_a_client_gets_what_kafka_gives_it_with_these_rights(answers, name):
    recorded = {rights: outcome for asked, rights, outcome in read_recording() if asked == name}
    mine = {rights: outcome for (asked, rights), outcome in answers.items() if asked == name}
    assert recorded
    assert mine == recorded


def test_the_table_has_every_row_of_the_recording(answers):
    assert {(asked, rights) for asked, rights, _ in read_recording()} == set(answers)
    assert len(answers) > 2_200


def test_every_api_that_is_served_is_in_the_table():
    asked = {asked.make(bytes(16)).API_KEY for asked in TABLE}
    served = {key for key in ApiKey if ApiTable().get(key)}
    # Who logs in has no rights yet.
    assert served - {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE} == asked


@pytest.mark.real_kafka
@pytest.mark.soak(part="scenarios")
def test_a_real_kafka_still_answers_as_it_was_recorded():
    from broker_sim_integration.acls.real import RealBroker

    with RealBroker() as broker:
        assert to_text(play(broker)) == RECORDING.read_text("utf-8")
