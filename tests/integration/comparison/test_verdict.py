import pytest

from integration.comparison.differences import KnownDifference
from integration.comparison.runs import Run
from integration.comparison.verdict import Verdict
from integration.observations import at_timeout


def fields_of(result):
    return [(found.step, found.field) for found in result.differences]


def test_equal_observations_in_time_agree_though_their_times_differ(result_of, see):
    result = result_of(([see(elapsed_ms=1.0)], [see(elapsed_ms=90.0)]))
    assert result.verdict is Verdict.AGREED
    assert result.differences == []


@pytest.mark.parametrize(
    "field", ["error_code", "base_offset", "high_watermark", "records", "bytes"]
)
def test_every_exact_field_has_to_be_equal(result_of, see, field):
    result = result_of(([see(**{field: 1})], [see(**{field: 2})]))
    assert result.verdict is Verdict.DIFFERED
    (found,) = result.differences
    assert (found.field, found.kafka, found.sim, found.reason) == (field, 1, 2, None)


def test_further_fields_have_to_be_equal_and_present(result_of, see):
    result = result_of(([see(fields={"a": 1, "b": 2})], [see(fields={"a": 1, "c": 3})]))
    assert sorted(fields_of(result)) == [("step", "b"), ("step", "c")]


@pytest.mark.parametrize(("kafka_ms", "sim_ms"), [(500.0, 900.0), (900.0, 500.0), (1.0, 500.0)])
def test_an_answer_out_of_its_window_on_either_side_is_a_difference(
    result_of, see, kafka_ms, sim_ms
):
    due = at_timeout(500, late_ms=100)
    result = result_of(
        ([see(elapsed_ms=kafka_ms, timing=due)], [see(elapsed_ms=sim_ms, timing=due)])
    )
    assert fields_of(result) == [("step", "timing")]


def test_observations_are_matched_by_step_and_attempt_not_by_order(result_of, see):
    first, second = see("a", base_offset=1), see("a", base_offset=2, attempt=2)
    assert result_of(([first, second], [second, first])).verdict is Verdict.AGREED


def test_a_step_that_one_side_lacks_is_a_difference(result_of, see):
    result = result_of(([see("a"), see("b")], [see("a")]))
    assert fields_of(result) == [("b", "seen")]


def test_a_documented_difference_does_not_fail_but_is_shown(result_of, see):
    known = [KnownDifference("a_*", "step", "error_code", "because")]
    result = result_of(([see(error_code=1)], [see(error_code=2)]), known=known)
    assert result.verdict is Verdict.DOCUMENTED
    assert [found.reason for found in result.differences] == ["because"]


def test_one_undocumented_difference_beside_a_documented_one_fails(result_of, see):
    known = [KnownDifference("*", "*", "bytes", "because")]
    result = result_of(([see(bytes=1, records=1)], [see(bytes=2, records=2)]), known=known)
    assert result.verdict is Verdict.DIFFERED


def test_repeats_with_different_verdicts_are_flaky_with_their_counts(result_of, see):
    same, other = ([see()], [see()]), ([see()], [see(error_code=7)])
    result = result_of(same, other, same)
    assert result.verdict is Verdict.FLAKY
    assert (result.agreed, result.differed) == (2, 1)


def test_trouble_of_the_reference_is_no_difference(result_of, see):
    result = result_of((Run(trouble="no brokers"), [see()]))
    assert result.verdict is Verdict.REFERENCE_TROUBLE
    assert result.trouble == "kafka: no brokers"


def test_trouble_of_the_simulator_is_a_difference(result_of, see):
    result = result_of(([see()], Run(trouble="it crashed")))
    assert result.verdict is Verdict.DIFFERED
    assert fields_of(result) == [("", "trouble")]


def test_scenario_that_the_reference_cannot_run_is_skipped(result_of):
    result = result_of((Run(skipped="needs disconnect"), Run()))
    assert result.verdict is Verdict.SKIPPED
