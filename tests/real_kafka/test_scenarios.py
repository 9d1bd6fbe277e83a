"""Some scenarios on a real Kafka and on the simulator.

`make compare` runs all of them. Every change has to pass these here: one or two scenarios for each
way to wait, on the session's real brokers.
"""

import pytest
from broker_sim_integration.cluster_under_test.running_cluster import kafka_cluster
from broker_sim_integration.comparison.runs import ClusterRunner, SimulatorSide
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.scenarios.catalogue import select

pytestmark = pytest.mark.soak(part="scenarios")

CHOSEN = (
    "acks_1_is_answered_at_once",
    "acks_all_is_answered_when_all_replicas_have_it",
    "user_producer_times_out_while_a_follower_is_frozen",
    "a_request_with_one_slow_partition_is_answered_as_a_whole",
    "consumers_see_only_what_all_in_sync_replicas_have",
    "an_empty_partition_answers_at_max_wait",
    "a_produce_wakes_a_parked_fetch",
    "min_bytes_are_counted_over_several_produces",
    "an_offset_out_of_range_ends_the_wait_of_the_whole_request",
    "any_follower_serves_consumers_from_version_11",
    "deletion_times_out_while_a_follower_is_frozen",
    "a_duplicate_is_answered_with_the_first_offset",
    "the_timeouts_of_pipelined_produces_add_up",
    "bytes_that_are_no_request_end_the_connection",
)

RESTARTED = ("a_restarted_broker_has_its_log", "a_follower_fetches_again_what_it_has_lost")
"""What needs data on disk: the session's real brokers have it anyway."""


@pytest.fixture(scope="module")
def simulator():
    with SimulatorSide().open(()) as runner:
        yield runner


@pytest.fixture(scope="module")
def simulator_on_disk():
    with SimulatorSide().open((("log.dir", "data"),)) as runner:
        yield runner


@pytest.fixture(scope="module")
def kafka(running_real_kafka):
    with ClusterRunner(kafka_cluster(running_real_kafka)) as runner:
        yield runner


@pytest.mark.real_kafka
@pytest.mark.parametrize("scenario", select(CHOSEN), ids=lambda scenario: scenario.name)
def test_the_simulator_answers_as_kafka(scenario, kafka, simulator, play):
    result = play(scenario, kafka, simulator)
    assert result.verdict in {Verdict.AGREED, Verdict.DOCUMENTED}, result.trouble or result.differences


@pytest.mark.real_kafka
@pytest.mark.parametrize("scenario", select(RESTARTED), ids=lambda scenario: scenario.name)
def test_the_simulator_is_restarted_as_kafka(scenario, kafka, simulator_on_disk, play):
    result = play(scenario, kafka, simulator_on_disk)
    assert result.verdict in {Verdict.AGREED, Verdict.DOCUMENTED}, result.trouble or result.differences
