"""A repeat that was only late is played again; whatever else differs counts at once."""

import pytest

from integration.comparison.playing import Playing
from integration.comparison.repeats import PLAYS, play_repeat
from integration.comparison.verdict import ScenarioResult, Verdict
from integration.observations import at_once, at_timeout

DUE = at_timeout(500, late_ms=100)


@pytest.fixture
def play(make_scenario, see):
    """Return a function that plays what the simulator shows, in this order, against one Kafka."""

    def run(*sim):
        result, numbers = ScenarioResult(make_scenario()), []
        kafka = Playing([see(elapsed_ms=500.0, timing=DUE)])

        def show(number):
            numbers.append(number)
            return kafka, Playing([see(**sim[number - 1])])

        play_repeat(result, show, ())
        return result, numbers

    return run


IN_TIME = {"elapsed_ms": 501.0, "timing": DUE}
LATE = {"elapsed_ms": 900.0, "timing": DUE}
EARLY = {"elapsed_ms": 3.0, "timing": DUE}


def test_a_repeat_in_time_is_played_once(play):
    result, numbers = play(IN_TIME)
    assert (result.verdict, result.flakiness, numbers) == (Verdict.AGREED, "", [1])


@pytest.mark.parametrize("off", [LATE, EARLY])
def test_a_repeat_out_of_time_is_played_again_and_shown(play, off):
    result, numbers = play(off, IN_TIME)
    assert (result.verdict, numbers) == (Verdict.AGREED, [1, 2])
    assert result.flakiness == "1 of 2 repeats were late"
    assert [(found.repeat, found.field) for found in result.differences] == [(1, "timing")]


def test_a_scenario_that_is_out_of_time_whenever_it_is_played_differs(play):
    result, numbers = play(*[LATE] * PLAYS)
    assert (result.verdict, result.late, len(numbers)) == (Verdict.DIFFERED, PLAYS, PLAYS)


@pytest.mark.parametrize(
    "other",
    [
        {**IN_TIME, "error_code": 7},
        {**LATE, "error_code": 7},
        {"elapsed_ms": 1.0, "timing": at_once()},
    ],
    ids=["another answer", "another answer, late", "due for another reason"],
)
def test_any_other_difference_counts_at_once(play, other):
    result, numbers = play(other)
    assert (result.verdict, result.differed, numbers) == (Verdict.DIFFERED, 1, [1])


def test_a_difference_after_a_late_repeat_is_not_forgiven(play):
    result, _ = play(LATE, {**IN_TIME, "error_code": 7})
    assert result.verdict is Verdict.DIFFERED
    assert result.flakiness == "1 of 2 repeats differ and 1 of 2 repeats were late"
