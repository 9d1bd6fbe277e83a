"""The windows of Kafka's own periods."""

from broker_sim_integration.clients.stopwatch import Moment
from broker_sim_integration.comparison.timeliness import late_ms
from broker_sim_integration.observations import Observation
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.scenarios.helpers.broker_configs import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from broker_sim_integration.scenarios.helpers.mechanisms import FETCH_WAIT_MS, at_new_leader, at_next_heartbeat, fenced

LOST = Moment(1000.0, began_ms=990.0)


def late(timing, elapsed_ms):
    return late_ms(Observation("any", elapsed_ms=elapsed_ms, timing=timing), 0.0)


def test_change_learned_by_heartbeat_may_come_one_interval_later():
    at_controller = fenced(LOST, LOST)
    at_broker = at_next_heartbeat(at_controller)
    last_ms = SESSION_TIMEOUT_MS + SESSION_TIMEOUT_MS / 8
    assert [late(at_controller, last_ms + by_ms) for by_ms in (0, 1)] == [0, 1]
    last_ms += HEARTBEAT_INTERVAL_MS
    assert [late(at_broker, last_ms + by_ms) for by_ms in (0, 1)] == [0, 1]
    assert at_broker.earliest_ms == at_controller.earliest_ms
    assert at_broker.due_ms == at_controller.due_ms


def test_reason_names_both_periods():
    reason = at_next_heartbeat(fenced(LOST, LOST)).reason
    assert "eight times in a session" in reason
    assert "its next heartbeat" in reason


def test_a_refused_follower_backs_off_and_then_waits_for_its_next_fetch():
    backoff_ms = int(COMMON_CONFIGS["replica.fetch.backoff.ms"])
    last_ms = backoff_ms + FETCH_WAIT_MS
    assert [late(at_new_leader(), last_ms + by_ms) for by_ms in (0, 1)] == [0, 1]
    assert f"{backoff_ms} ms" in at_new_leader().reason
