import pytest
from broker_sim_integration.comparison.intervals import covered_ms
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("since_ms", "until_ms", "expected"),
    [(0, 200, 40), (100, 140, 40), (110, 120, 10), (90, 110, 10), (130, 200, 10), (0, 100, 0), (140, 200, 0)],
)
def test_an_interval_counts_as_far_as_it_overlaps(since_ms, until_ms, expected):
    assert covered_ms([(100, 140)], since_ms, until_ms) == expected


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(10, 20), (30, 35)], 15),
        ([(30, 35), (10, 20)], 15),
        ([(10, 20), (15, 25)], 15),
        ([(10, 30), (15, 20)], 20),
        ([(10, 20), (10, 20)], 10),
        ([(10, 20), (20, 30)], 20),
        ([(20, 10)], 0),
    ],
)
def test_what_lies_in_several_intervals_counts_once(intervals, expected):
    assert covered_ms(intervals, 0, 100) == expected


MOMENTS = st.integers(0, 50)


@given(st.lists(st.tuples(MOMENTS, MOMENTS)), MOMENTS, MOMENTS)
def test_it_is_the_number_of_milliseconds_that_lie_in_any(intervals, one, other):
    since, until = sorted((one, other))
    covered = sum(any(began <= moment < ended for began, ended in intervals) for moment in range(since, until))
    assert covered_ms(intervals, since, until) == covered
