"""Percentiles per group and minute, exactly."""

import datetime as dt
import statistics

import pytest

pytestmark = pytest.mark.spark

T = 1_700_000_000_000 // 60_000 * 60_000


@pytest.fixture
def rows_of(events_frame):
    from broker_sim_integration.pipeline.jobs.latency import latency
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles

    return lambda rows: latency(lifecycles(events_frame(rows))).collect()


def test_percentiles_are_exact_and_totals_span_the_minutes(rows_of, life):
    waits = list(range(1, 101))
    rows = [
        row
        for number, wait in enumerate(waits)
        for row in life(number, T + number % 2 * 60_000, T + number % 2 * 60_000 + wait)
    ]
    found = {row.minute: row for row in rows_of(rows)}
    first = dt.datetime.fromtimestamp(T / 1000, dt.UTC).replace(tzinfo=None)
    assert {None: 100, first: 50, first + dt.timedelta(minutes=1): 50} == {
        minute and _utc(minute): row.operations for minute, row in found.items()
    }
    total = found[None]
    cuts = statistics.quantiles(waits, n=1000, method="inclusive")
    assert total.waited_p50_ms == pytest.approx(cuts[499])
    assert total.waited_p90_ms == pytest.approx(cuts[899])
    assert total.waited_p95_ms == pytest.approx(cuts[949])
    assert total.waited_p99_ms == pytest.approx(cuts[989])
    assert total.waited_p999_ms == pytest.approx(cuts[998])
    assert total.waited_max_ms == 100
    assert total.lateness_p50_ms is None


def test_long_waits_are_rounded_so_that_few_are_held(rows_of, events_frame, life):
    from broker_sim_integration.pipeline.jobs.latency import EXACT_MS, waiting_times
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles

    long_ms = 1_000 * EXACT_MS
    waits = [EXACT_MS - 2, EXACT_MS - 1, *range(long_ms, long_ms + 500)]
    rows = [row for number, wait in enumerate(waits) for row in life(number, T, T + wait)]
    held = waiting_times(lifecycles(events_frame(rows))).collect()
    found = sorted(row.waited_ms for row in held)
    assert found[:2] == waits[:2], "short waits are exact"
    assert len(found) == 3, "half a second of 36 hours is not told apart"
    assert sum(row.times for row in held) == len(waits)
    (total,) = [row for row in rows_of(rows) if row.minute is None]
    assert total.waited_max_ms == waits[-1], "the maximum is exact"
    assert 0 <= waits[-1] - total.waited_p99_ms < long_ms / (EXACT_MS / 2)


def _utc(timestamp):
    """Convert Spark's datetimes, which are in local time, to UTC."""
    return timestamp.astimezone(dt.UTC).replace(tzinfo=None)


def test_groups_are_purgatory_outcome_api_and_side(rows_of, life):
    rows = [
        *life(1, T, T + 5),
        *life(2, T, T + 7, "expired", lateness_ms=3),
        *life(3, T, T + 5, side="kafka"),
        *life(4, T, T + 5, purgatory="Fetch", api="Fetch"),
        *life(5, T),
    ]
    totals = [row for row in rows_of(rows) if row.minute is None]
    assert {(r.side, r.purgatory, r.outcome, r.api): r.operations for r in totals} == {
        ("sim", "Produce", "completed", "Produce"): 1,
        ("sim", "Produce", "expired", "Produce"): 1,
        ("kafka", "Produce", "completed", "Produce"): 1,
        ("sim", "Fetch", "completed", "Fetch"): 1,
    }
    (expired,) = [row for row in totals if row.outcome == "expired"]
    assert (expired.lateness_p99_ms, expired.lateness_max_ms) == (3.0, 3)
