"""Dead letters of share groups are what Kafka 4.4.0 wrote."""

import json

import pytest
from broker_sim_integration.case_connection import play_on_simulated
from broker_sim_integration.dead_letters.table import CONFIGS, RECORDING, TABLE, play
from broker_sim_integration.recorded_cases import read_cases


@pytest.mark.parametrize("case", TABLE)
def test_dead_letters_are_those_of_kafka(case):
    assert json.loads(json.dumps(play_on_simulated(play, case, CONFIGS))) == read_cases(RECORDING)[case]


def test_the_recording_has_these_cases():
    assert list(read_cases(RECORDING)) == list(TABLE)


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_kafka_still_does_the_same():
    from broker_sim_integration.dead_letters.real import play_on_real

    assert json.loads(json.dumps(play_on_real())) == read_cases(RECORDING)
