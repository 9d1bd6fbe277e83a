from broker_sim_integration.comparison.distribution import LEAST_SAMPLES, P95_MS, Machines
from broker_sim_integration.comparison.lateness import compare_lateness
from broker_sim_integration.observations import at_once, at_timeout, on_event


def repeated(see, lateness_ms, step="step", count=LEAST_SAMPLES):
    due = at_timeout(20)
    return [see(step, elapsed_ms=20 + lateness_ms, timing=due, attempt=turn) for turn in range(1, count + 1)]


def singles(see, elapsed_ms, timing=None, count=LEAST_SAMPLES):
    timing = timing or at_once()
    return [see(f"step {turn}", elapsed_ms=elapsed_ms + turn / 1000, timing=timing) for turn in range(count)]


def rows(*results):
    return {row.name: row.verdict for row in compare_lateness(results, Machines())}


def test_a_step_that_was_repeated_often_has_a_row_of_its_own(result_of, see):
    assert rows(result_of((repeated(see, 1), repeated(see, 2)))) == {"a_claim / step": "agrees"}
    assert rows(result_of((repeated(see, 1), repeated(see, 2 + P95_MS)))) == {"a_claim / step": "differs"}


def test_all_single_responses_of_a_class_are_judged_together(result_of, see):
    assert rows(result_of((singles(see, 1), singles(see, 2)))) == {"all at_once": "agrees"}
    assert rows(result_of((singles(see, 1), singles(see, 2 + P95_MS)))) == {"all at_once": "differs"}


def test_singles_of_several_scenarios_are_one_class(result_of, see):
    half = LEAST_SAMPLES // 2
    both = [
        result_of((singles(see, 1, count=half), singles(see, 30, count=half)), name=name) for name in ("one", "other")
    ]
    assert rows(*both) == {"all at_once": "differs"}
    assert rows(both[0]) == {"all at_once": ""}


def test_responses_with_a_spread_are_in_no_class(result_of, see):
    spread = on_event(0, spread_ms=500, reason="a follower's fetch")
    assert rows(result_of((singles(see, 1, spread), singles(see, 400, spread)))) == {}


def test_a_repeat_that_was_late_only_now_and_then_does_not_count(result_of, see):
    late = (singles(see, 1), singles(see, 60))
    in_time = (singles(see, 1), singles(see, 2))
    assert rows(result_of(late, in_time, in_time)) == {"all at_once": "agrees"}
    assert rows(result_of(late, late, in_time)) == {"all at_once": "differs"}


def test_the_row_of_a_step_is_of_a_repeat_that_counts(result_of, see):
    late = (repeated(see, 1), repeated(see, 20))
    in_time = (repeated(see, 1), repeated(see, 2))
    assert rows(result_of(in_time, in_time, late)) == {"a_claim / step": "agrees"}
    assert rows(result_of(in_time, late, late))["a_claim / step"] == "differs"


def test_a_response_with_several_partitions_counts_once(result_of, see):
    parts = [see(f"partition {turn}", elapsed_ms=30) for turn in range(LEAST_SAMPLES)]
    (row,) = compare_lateness([result_of((parts, parts))], Machines())
    assert (row.sim.count, row.judged) == (1, False)
