"""The rows of docs/reference/differences.md against the recorded Kafka: each of them is still needed."""

import pytest
from broker_sim_integration.comparison.both_sides import compare_sides
from broker_sim_integration.comparison.differences import read_known_differences
from broker_sim_integration.comparison.machine import Stalls
from broker_sim_integration.comparison.recorded import RecordedSide
from broker_sim_integration.comparison.runs import SimulatorSide
from broker_sim_integration.report.report import unused_rows
from broker_sim_integration.scenarios.catalogue import select

pytestmark = pytest.mark.soak(part="scenarios")


@pytest.mark.threads
def test_every_row_of_the_document_fits_a_difference():
    known = read_known_differences()
    results = compare_sides(
        RecordedSide(),
        SimulatorSide(),
        select(sorted({row.scenario for row in known})),
        repeats=1,
        known=known,
        on_result=lambda _: None,
        control=Stalls(),
    )
    assert [result.not_played or result.trouble for result in results] == [None] * len(results)
    assert unused_rows(known, results) == []
