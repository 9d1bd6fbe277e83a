from itertools import pairwise

import pytest
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, lanes_of, turns_of

WITHIN_MS = 9600


@pytest.fixture
def turns():
    return turns_of((20, 100, 500, 1500, 9000), WITHIN_MS)


def test_every_wait_has_all_its_attempts(turns):
    for wait_ms in (20, 100, 500, 1500, 9000):
        attempts = [turn.attempt for turn in turns if turn.wait_ms == wait_ms]
        assert sorted(attempts) == list(range(1, SAMPLES + 1))


def test_turns_are_in_the_order_of_sending_and_over_in_time(turns):
    assert turns == sorted(turns, key=lambda turn: turn.at_ms)
    assert all(turn.at_ms + turn.wait_ms <= WITHIN_MS for turn in turns)


def test_a_lane_has_one_wait_at_a_time(turns):
    for lane in range(lanes_of(turns)):
        waits = [turn for turn in turns if turn.lane == lane]
        assert [turn.round for turn in waits] == list(range(1, len(waits) + 1))
        assert len({turn.wait_ms for turn in waits}) == 1
        for earlier, later in pairwise(waits):
            assert earlier.at_ms + earlier.wait_ms < later.at_ms


def test_short_waits_take_turns_on_few_connections():
    assert lanes_of(turns_of([20], WITHIN_MS)) == 1
    assert lanes_of(turns_of([9000], WITHIN_MS)) == SAMPLES
