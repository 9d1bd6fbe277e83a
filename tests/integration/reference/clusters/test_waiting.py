"""`wait_until` returns the first true result, and times out."""

import pytest
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_purgatory.clock import VirtualClock


def test_first_true_answer_is_returned():
    answers = iter([None, 0, "", "here", "too late"])
    assert wait_until(lambda: next(answers), "x", timeout_ms=1_000, interval_ms=0) == "here"


def test_error_at_the_deadline_names_the_condition():
    clock = VirtualClock()
    asked_at = []

    def never():
        asked_at.append(clock.now_ms())
        clock.advance(10)

    with pytest.raises(ReferenceClusterError, match=r"not reached within 0\.05 s: three brokers"):
        wait_until(never, "three brokers", timeout_ms=50, interval_ms=0, clock=clock)
    assert asked_at == [0, 10, 20, 30, 40]


def test_an_answer_at_the_last_moment_counts():
    clock = VirtualClock()

    def slow():
        clock.advance(1_000)
        return True

    assert wait_until(slow, "x", timeout_ms=1, clock=clock)
