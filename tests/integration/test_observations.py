import json

import pytest
from broker_sim_integration.observations import Observation, Timing, TimingClass, at_once, at_timeout, on_event, untimed


def test_a_timeout_is_never_early():
    assert at_timeout(500) == Timing(TimingClass.AT_TIMEOUT, due_ms=500, earliest_ms=500)


def test_an_event_is_not_early_once_it_was_sent():
    assert on_event(300) == Timing(TimingClass.ON_EVENT, due_ms=300, earliest_ms=300)
    assert on_event(300, earliest_ms=280).earliest_ms == 280


def test_a_spread_has_a_reason():
    with pytest.raises(AssertionError):
        on_event(300, spread_ms=500)


def test_timing_is_described():
    assert str(at_timeout(1500)) == "at 1500 ms"
    assert str(at_once()) == "at once"
    assert str(on_event(10.0)) == "on an event at 10.0 ms"
    assert str(on_event(10.0, spread_ms=500, reason="x")) == "on an event at 10.0 to 510.0 ms"
    assert str(untimed("a reason")) == "any time"


def test_lateness_is_what_came_after_the_due_time():
    assert Observation("s", elapsed_ms=505.5, timing=at_timeout(500)).lateness_ms == 5.5


@pytest.mark.parametrize(
    "timing",
    [
        at_once(),
        at_timeout(1500),
        on_event(300, earliest_ms=200, spread_ms=500, reason="a follower's fetch"),
        untimed("a user's consumer polls"),
    ],
)
def test_an_observation_survives_json(timing):
    seen = Observation(
        "step",
        error_code=7,
        base_offset=3,
        high_watermark=2,
        records=1,
        bytes=70,
        elapsed_ms=1502.125,
        timing=timing,
        attempt=4,
        fields={"values": ["a"], "closed": False},
        stalled_ms=1.5,
    )
    assert Observation.from_json(json.loads(json.dumps(seen.to_json()))) == seen


def test_the_moment_of_the_answer_stays_in_its_process():
    assert "answered_ms" not in Observation("step", answered_ms=1.0, timing=at_once()).to_json()
