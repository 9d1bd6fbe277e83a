"""Metrics that clients push are answered as by Kafka 4.4.0 with a plugin."""

import json

import pytest
from broker_sim_integration.case_connection import play_on_simulated
from broker_sim_integration.recorded_cases import read_cases
from broker_sim_integration.telemetry.table import CONFIGS, RECORDING, TABLE, play


@pytest.mark.parametrize("case", TABLE)
def test_pushed_metrics_are_answered_as_by_kafka(case):
    assert json.loads(json.dumps(play_on_simulated(play, case, CONFIGS))) == read_cases(RECORDING)[case]


def test_the_recording_has_these_cases():
    assert list(read_cases(RECORDING)) == list(TABLE)


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_kafka_still_does_the_same():
    from broker_sim_integration.telemetry.real import play_on_real

    assert json.loads(json.dumps(play_on_real())) == read_cases(RECORDING)
