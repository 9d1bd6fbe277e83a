from integration.comparison.lateness import TOLERANCE_MS, Distribution, compare_lateness
from integration.observations import at_timeout


def test_percentiles_are_the_nearest_rank():
    found = Distribution.of(range(1, 101))
    assert (found.count, found.p50, found.p95, found.p99, found.maximum) == (100, 50, 95, 99, 100)


def test_a_single_sample_is_every_percentile():
    found = Distribution.of([7.5])
    assert (found.p50, found.p99, found.maximum) == (7.5, 7.5, 7.5)


def repeated(see, lateness_ms):
    due = at_timeout(20)
    return [see(elapsed_ms=20 + lateness_ms, timing=due, attempt=turn) for turn in range(50)]


def test_a_simulator_later_than_kafka_by_more_than_the_tolerance_is_late(result_of, see):
    result = result_of((repeated(see, 1.0), repeated(see, 1.1 + TOLERANCE_MS)))
    judged = [compared for compared in compare_lateness([result]) if compared.judged]
    assert [compared.agrees for compared in judged] == [False]


def test_a_simulator_earlier_than_kafka_agrees(result_of, see):
    result = result_of((repeated(see, 100.0), repeated(see, 0.0)))
    assert all(compared.agrees for compared in compare_lateness([result]))


def test_few_samples_are_shown_but_not_judged(result_of, see):
    result = result_of(([see(timing=at_timeout(1))], [see(timing=at_timeout(1))]))
    assert [compared.name for compared in compare_lateness([result])] == ["all at_timeout"]
    assert not any(compared.judged for compared in compare_lateness([result]))
