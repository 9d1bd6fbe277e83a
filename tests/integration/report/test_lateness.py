"""The pictures of lateness, on the terminal and in the page."""

import pytest
from broker_sim_integration.comparison.distribution import Machines, compare_samples
from broker_sim_integration.comparison.lateness import compare_lateness
from broker_sim_integration.observations import TimingClass, at_timeout
from broker_sim_integration.report.lateness_rows import LatenessRow, lateness_rows, position
from broker_sim_integration.report.lateness_text import lateness_lines
from broker_sim_integration.report.timing_plot import timing_plot


@pytest.fixture
def waits(result_of, see):
    """Return a function that makes a result of so many waits of 20 ms, by side so late."""

    def waits(count, kafka_ms, sim_ms):
        def seen(late_ms):
            numbers = range(1, count + 1)
            return [see("w", 20 + late_ms + n / 1000, timing=at_timeout(20), attempt=n) for n in numbers]

        return result_of((seen(kafka_ms), seen(sim_ms)), name="waits")

    return waits


@pytest.fixture
def rows_of():
    """Return a function that returns the rows of results."""
    return lambda *results: lateness_rows(results, compare_lateness(results, Machines()))


@pytest.fixture
def row():
    """Return a maker of a row from both sides' samples."""

    def row(name, kafka, sim):
        compared = compare_samples(name, TimingClass.AT_TIMEOUT, kafka, sim, machines=Machines())
        return LatenessRow(compared, kafka, sim)

    return row


def test_step_that_was_repeated_often_has_a_row_of_its_own(waits, rows_of):
    (row,) = rows_of(waits(30, 1.0, 2.0))
    assert (row.name, row.compared.verdict) == ("waits / w", "agrees")
    assert (len(row.kafka), len(row.sim)) == (30, 30)
    assert (row.kafka[29], row.sim[29]) == pytest.approx((1.03, 2.03))


def test_a_few_answers_are_in_the_row_of_their_class(waits, rows_of):
    (row,) = rows_of(waits(29, 1.0, 2.0), waits(1, 3.0, 4.0))
    assert row.name == "all at_timeout"
    assert (len(row.kafka), len(row.sim)) == (30, 30)
    assert (row.kafka[29], row.sim[29]) == pytest.approx((3.001, 4.001))


def test_position_is_logarithmic_and_stays_on_the_axis():
    assert [position(ms) for ms in (-5, 0.1, 10, 1000, 9999)] == [0, 0, 0.5, 1, 1]


def test_lines_show_median_and_p95_of_each_side_within_80_columns(row):
    shown = row("a wait", [1.0] * 20 + [100.0] * 2, [10.0])
    axis, name, kafka, sim = lateness_lines([shown])
    assert name == "a wait"
    assert max(map(len, (axis, kafka, sim))) <= 80
    assert [axis.index(mark) for mark in ("100 ", "1000")] == [kafka.index("|"), len(kafka) - 4]
    assert kafka.split()[:4] == ["Kafka", "22", "1.0", "100.0"]
    assert sim.index("#") == kafka.index("#") + 10


def test_plot_has_a_stroke_for_each_answer_and_escapes_names(row):
    svg = timing_plot([row("a < b", [1.0, 2.0], [3.0])])
    assert "a &lt; b" in svg
    assert svg.count("v10") == 3
    assert "p95 2 ms" in svg
