import json

import pytest

from integration.observations import UNTIMED, Observation, at_once, at_timeout, on_event


@pytest.mark.parametrize(
    ("timing", "elapsed_ms", "holds"),
    [
        (at_once(), 0.0, True),
        (at_once(100), 100.0, True),
        (at_once(100), 100.1, False),
        (at_timeout(500), 497.9, False),
        (at_timeout(500), 498.0, True),
        (at_timeout(500, late_ms=10), 510.0, True),
        (at_timeout(500, late_ms=10), 510.1, False),
        (on_event(300, early_ms=20, late_ms=40), 279.9, False),
        (on_event(300, early_ms=20, late_ms=40), 340.0, True),
        (on_event(300, early_ms=20, late_ms=40), 340.1, False),
        (UNTIMED, 1e9, True),
    ],
)
def test_an_answer_is_in_time_within_its_window(timing, elapsed_ms, holds):
    assert timing.holds(elapsed_ms) is holds


def test_timing_is_described_with_its_window():
    assert str(at_timeout(1500, late_ms=250)) == "at 1500 ms (-2 +250 ms)"
    assert str(at_once(250)) == "at once (+250 ms)"


def test_lateness_is_what_came_after_the_due_time():
    assert Observation("s", elapsed_ms=505.5, timing=at_timeout(500)).lateness_ms == 5.5


def test_an_observation_survives_json():
    seen = Observation(
        "step",
        error_code=7,
        base_offset=3,
        high_watermark=2,
        records=1,
        bytes=70,
        elapsed_ms=1502.125,
        timing=at_timeout(1500),
        attempt=4,
        fields={"values": ["a"], "closed": False},
    )
    assert Observation.from_json(json.loads(json.dumps(seen.to_json()))) == seen
