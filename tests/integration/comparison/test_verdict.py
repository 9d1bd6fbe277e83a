import pytest
from broker_sim_integration.comparison.differences import KnownDifference
from broker_sim_integration.comparison.runs import Run
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.observations import at_once, at_timeout


def fields_of(result):
    return [(found.step, found.field) for found in result.differences]


def test_equal_observations_in_time_agree_though_their_times_differ(result_of, see):
    result = result_of(([see(elapsed_ms=1.0)], [see(elapsed_ms=30.0)]))
    assert result.verdict is Verdict.AGREED
    assert result.differences == []


@pytest.mark.parametrize("field", ["error_code", "base_offset", "high_watermark", "records", "bytes"])
def test_every_exact_field_has_to_be_equal(result_of, see, field):
    result = result_of(([see(**{field: 1})], [see(**{field: 2})]))
    assert result.verdict is Verdict.DIFFERED
    (found,) = result.differences
    assert (found.field, found.kafka, found.sim, found.reason) == (field, 1, 2, None)


def test_further_fields_have_to_be_equal_and_present(result_of, see):
    result = result_of(([see(fields={"a": 1, "b": 2})], [see(fields={"a": 1, "c": 3})]))
    assert sorted(fields_of(result)) == [("step", "b"), ("step", "c")]


@pytest.mark.parametrize(
    ("kafka_ms", "sim_ms", "field"), [(500.0, 900.0, "late"), (1.0, 500.0, "early"), (500.0, 499.5, "early")]
)
def test_an_answer_that_is_early_or_late_on_either_side_is_a_difference(result_of, see, kafka_ms, sim_ms, field):
    due = at_timeout(500)
    result = result_of(([see(elapsed_ms=kafka_ms, timing=due)], [see(elapsed_ms=sim_ms, timing=due)]))
    assert fields_of(result) == [("step", field)]


def test_another_class_of_timing_is_a_difference(result_of, see):
    result = result_of(([see(elapsed_ms=500, timing=at_timeout(500))], [see(elapsed_ms=0, timing=at_once())]))
    assert fields_of(result) == [("step", "timing")]


def test_observations_are_matched_by_step_and_attempt_not_by_order(result_of, see):
    first, second = see("a", base_offset=1), see("a", base_offset=2, attempt=2)
    assert result_of(([first, second], [second, first])).verdict is Verdict.AGREED


def test_a_step_that_one_side_lacks_is_a_difference(result_of, see):
    result = result_of(([see("a"), see("b")], [see("a")]))
    assert fields_of(result) == [("b", "seen")]


def test_a_documented_difference_does_not_fail_but_is_shown(result_of, see):
    known = [KnownDifference("a_*", "step", "error_code", "*", "because")]
    result = result_of(([see(error_code=1)], [see(error_code=2)]), known=known)
    assert result.verdict is Verdict.DOCUMENTED
    assert [found.reason for found in result.differences] == ["because"]


def test_one_undocumented_difference_beside_a_documented_one_fails(result_of, see):
    known = [KnownDifference("*", "*", "bytes", "*", "because")]
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
    assert result.trouble == "Kafka: no brokers"


def test_trouble_of_the_simulator_is_a_difference(result_of, see):
    result = result_of(([see()], Run(trouble="it crashed")))
    assert result.verdict is Verdict.DIFFERED
    assert fields_of(result) == [("", "trouble")]


def test_scenario_that_the_reference_cannot_play_is_not_played(result_of):
    result = result_of((Run(skipped="needs disconnect"), Run()))
    assert result.verdict is Verdict.NOT_PLAYED


class TestLateness:
    @pytest.fixture
    def in_time(self, see):
        return [see(elapsed_ms=1.0)], [see(elapsed_ms=2.0)]

    @pytest.fixture
    def late(self, see):
        return [see(elapsed_ms=1.0)], [see(elapsed_ms=50.0)]

    @pytest.fixture
    def kafka_late(self, see):
        return [see(elapsed_ms=300.0)], [see(elapsed_ms=2.0)]

    @pytest.fixture
    def early(self, see):
        due = at_timeout(500)
        return [see(elapsed_ms=500, timing=due)], [see(elapsed_ms=498, timing=due)]

    def test_once_is_late_when_it_was_not_repeated(self, result_of, late):
        assert result_of(late).verdict is Verdict.LATE

    def test_in_most_repeats_is_late(self, result_of, late, in_time):
        result = result_of(late, in_time, late)
        assert result.verdict is Verdict.LATE
        assert result.flakiness == "2 of 3 repeats late"
        assert len(result.failures) == 2

    def test_of_kafka_is_neither_a_difference_nor_agreement(self, result_of, kafka_late, in_time):
        result = result_of(kafka_late)
        assert (result.verdict, result.failures) == (Verdict.REFERENCE_LATE, [])
        assert result.wants_another(1)
        result = result_of(kafka_late, in_time, kafka_late)
        assert result.verdict is Verdict.REFERENCE_LATE
        assert result.flakiness == "Kafka late in 2 of 3"
        assert not result.wants_another(1)

    def test_of_kafka_in_few_repeats_is_tolerated_but_reported(self, result_of, kafka_late, in_time):
        result = result_of(kafka_late, in_time, in_time)
        assert result.verdict is Verdict.AGREED
        assert result.flakiness == "Kafka late in 1 of 3"

    def test_of_kafka_hides_no_fault_of_the_simulator(self, result_of, see, kafka_late, late):
        kafka, _ = kafka_late
        assert result_of((kafka, [see(error_code=7)])).verdict is Verdict.DIFFERED
        assert result_of((kafka, late[1])).verdict is Verdict.LATE
        result = result_of(kafka_late, late, late)
        assert (result.verdict, len(result.failures)) == (Verdict.LATE, 2)

    @pytest.mark.parametrize(("late", "verdict"), [(14, Verdict.AGREED), (15, Verdict.REFERENCE_LATE)])
    def test_of_kafka_in_few_of_many_attempts_says_nothing(self, result_of, see, late, verdict):
        kafka = [see(elapsed_ms=300.0 if n <= late else 1.0, attempt=n) for n in range(1, 31)]
        assert result_of((kafka, [see(attempt=n) for n in range(1, 31)])).verdict is verdict

    def test_of_both_sides_in_turn_ends(self, result_of, kafka_late, late, in_time):
        result = result_of(kafka_late, late, in_time)
        assert not result.wants_another(1)
        assert result.verdict is Verdict.AGREED

    def test_in_few_repeats_is_tolerated_but_reported(self, result_of, late, in_time):
        result = result_of(late, in_time, in_time)
        assert result.verdict is Verdict.AGREED
        assert result.flakiness == "1 of 3 repeats late"
        assert result.failures == []

    def test_early_is_never_forgiven(self, result_of, early, in_time):
        assert result_of(early, in_time, in_time).verdict is Verdict.FLAKY
        assert not result_of(early).wants_another(1)

    def test_beside_another_difference_is_not_repeated(self, result_of, see):
        result = result_of(([see()], [see(error_code=7, elapsed_ms=300)]))
        assert result.verdict is Verdict.DIFFERED
        assert not result.wants_another(1)

    @pytest.mark.parametrize(
        ("played", "repeats", "wanted"),
        [
            ("i", 1, False),
            ("l", 1, True),
            ("ll", 1, False),
            ("li", 1, True),
            ("lil", 1, False),
            ("lii", 1, False),
            ("iil", 3, True),
            ("iili", 3, False),
            ("lll", 3, False),
        ],
    )
    def test_is_repeated_until_the_majority_is_clear(self, result_of, late, in_time, played, repeats, wanted):
        result = result_of(*({"l": late, "i": in_time}[one] for one in played))
        assert result.wants_another(repeats) is wanted

    def test_of_a_distribution_fails_the_scenario(self, result_of, see):
        def attempts(elapsed_ms):
            return [see(elapsed_ms=elapsed_ms, attempt=turn) for turn in range(1, 41)]

        result = result_of((attempts(1.0), attempts(25.0)))
        assert result.verdict is Verdict.LATE
        assert fields_of(result) == [("step", "lateness")]
        assert result.wants_another(1)
        assert result_of((attempts(1.0), attempts(2.0))).verdict is Verdict.AGREED

    def test_that_is_documented_needs_no_repeat(self, result_of, late):
        known = [KnownDifference("*", "step", "late", "*", "because")]
        result = result_of(late, known=known)
        assert result.verdict is Verdict.DOCUMENTED
        assert not result.wants_another(1)

    def test_of_a_distribution_that_is_documented_is_not_judged(self, result_of, see):
        known = [KnownDifference("*", "step", "lateness", "*", "because")]
        both = [[see(elapsed_ms=ms, attempt=turn) for turn in range(1, 41)] for ms in (1.0, 25.0)]
        result = result_of(both, known=known)
        assert result.verdict is Verdict.DOCUMENTED
        assert [row.verdict for row in result.distributions[1]] == [""]
