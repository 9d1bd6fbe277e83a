"""A trace as a run that plays: what waited when and in which bucket, what ended it, and whose request it was."""

import pytest

from broker_sim.cluster.status.replayed_trace import traced_run
from broker_sim.errors import ErrorCode
from broker_sim.trace import FIELDS, IDS_PER_LIFE

BEGAN_MS = 1_700_000_000_000
DELAY_MS = 500


def event(at_ms, name, operation_id=1, **values):
    """Return an event of a fetch that waits."""
    usual = {
        "ts_ms": BEGAN_MS + at_ms, "run_id": "run", "side": "sim", "broker": 1, "purgatory": "Fetch", "event": name,
        "operation_id": operation_id, "keys": ["orders-0"], "api": "Fetch", "client_id": "app", "delay_ms": DELAY_MS,
    }  # fmt: skip
    return dict.fromkeys(FIELDS) | usual | values


def parked(at_ms, operation_id=1, **values):
    return [event(at_ms, "tried", operation_id, **values), event(at_ms, "parked", operation_id, **values)]


def completed(at_ms, waited_ms, operation_id=1, **values):
    return event(at_ms, "completed", operation_id, waited_ms=waited_ms, completed_by="key:orders-0", **values)


def run_of(*events):
    return traced_run(events).run("a trace")


def waiting(run):
    """Return the ids of the operations that wait in each picture, by its time."""
    part, waits = None, {}
    for frame in run.frames:
        part = frame["set"].get("purgatory/1/Fetch", part)
        waits[frame["at_ms"]] = [one["since_ms"] for one in part["parked"]]
    return waits


def test_operation_waits_from_its_parking_to_its_end():
    run = run_of(*parked(0), *parked(40, 2), completed(90, 90), event(300, "tried", 3), completed(540, 500, 2))
    assert waiting(run) == {0: [0], 40: [0, 40], 90: [40], 540: []}


def test_place_on_the_wheel_is_that_of_the_deadline():
    run = run_of(*parked(0))
    [one] = run.frames[0]["set"]["purgatory/1/Fetch"]["parked"]
    # Levels of 20, 400 and 8 000 ms: 500 ms are in the third, in the bucket that begins at 400 ms.
    assert (one["due_ms"], one["level"], one["bucket"], one["operation"]) == (DELAY_MS, 3, 1, "DelayedFetch")


def test_operation_is_a_request_of_its_client_with_its_error():
    fenced = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    run = run_of(*parked(10), completed(60, 50, error_code=fenced), *parked(70, 2, client_id=None))
    ended, pending = run.requests
    assert (ended.at_ms, ended.elapsed_ms, ended.client, ended.errors) == (0, 50, "app", ("NOT_LEADER_OR_FOLLOWER",))
    assert (pending.at_ms, pending.elapsed_ms, pending.client) == (60, None, "client")


def test_end_has_the_cause_of_completion_or_the_lateness_of_expiry():
    expired = event(503, "expired", 2, waited_ms=503, lateness_ms=3, completed_by="timer")
    run = run_of(*parked(0), *parked(0, 2), completed(20, 20), expired)
    assert [(one.expired, one.by, one.at_ms - one.since_ms) for one in run.ended] == [
        (False, "an event on orders-0", 20), (True, "it expired, 3 ms late", 503),
    ]  # fmt: skip
    part = run.frames[-1]["set"]["purgatory/1/Fetch"]
    assert (part["completed"], part["expired"]) == (1, 1)


def test_operation_that_did_not_wait_is_a_request_and_nothing_that_ended():
    run = run_of(event(0, "tried"), completed(0, 0))
    assert (len(run.requests), run.ended) == (1, [])


def test_broker_that_starts_again_has_nothing_parked():
    run = run_of(*parked(0), *parked(100, IDS_PER_LIFE + 1))
    assert waiting(run) == {0: [0], 100: [100]}


def test_of_several_runs_the_first_is_replayed():
    traced = traced_run([*parked(0), *parked(50, 2, run_id="other"), completed(90, 90)])
    assert traced.other_runs == {"other"}
    assert len(traced.run("a trace").ended) == 1


@pytest.mark.parametrize("second_ms", [-1, 0])
def test_event_that_comes_late_is_taken_at_the_time_of_the_one_before(second_ms):
    run = run_of(*parked(0), *parked(second_ms, 2))
    assert waiting(run) == {0: [0, 0]}
