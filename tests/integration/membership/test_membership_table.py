"""Brokers join and leave a running cluster as those of Kafka 4.4.0."""

import json

import pytest
from broker_sim_integration.membership.simulated import play_on_simulated
from broker_sim_integration.membership.table import RECORDING, TABLE
from broker_sim_integration.recorded_cases import read_cases


@pytest.mark.parametrize("case", TABLE)
def test_brokers_join_and_leave_as_in_kafka(case):
    assert json.loads(json.dumps(play_on_simulated(case))) == read_cases(RECORDING)[case]


def test_the_recording_has_these_cases():
    assert list(read_cases(RECORDING)) == list(TABLE)


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_kafka_still_does_the_same():
    from broker_sim_integration.membership.real import play_on_real

    assert json.loads(json.dumps(play_on_real())) == read_cases(RECORDING)
