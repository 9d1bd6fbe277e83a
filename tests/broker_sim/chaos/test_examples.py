"""The bug of each application of examples/chaos is found and made small; its mended twin passes."""

from pathlib import Path

import pytest

from broker_sim.chaos.search import ChaosTest, examine

EXAMPLES = Path(__file__).parents[3] / "examples" / "chaos"
FIRST = {
    "background_tasks": 0,
    "cache_across_rebalance": 0,
    "commit_before_work": 0,
    "copy_without_transactions": 0,
    "offsets_outside_transaction": 0,
    "retries_without_idempotence": 0,
}
"""Seeds shortly before one that fails: to find it is what a bench measures."""
MOST = 20


@pytest.fixture(params=FIRST)
def example(request, monkeypatch):
    """The name of each example, whose module can be imported."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return request.param


def test_every_example_is_played():
    assert sorted(FIRST) == sorted(path.stem for path in EXAMPLES.glob("*_*.py"))


@pytest.mark.soak(part="chaos")
def test_bug_is_found_shrunk_and_repeats(example):
    test = ChaosTest.of(f"{example}:test_wrong")
    first = FIRST[example]
    schedules = map(test.draw, range(first, first + MOST))
    failure = next(filter(None, (examine(test, schedule) for schedule in schedules)), None)
    assert failure is not None
    assert len(failure.small.schedule.actions) <= 2, failure
    assert failure.repeats


def test_mended_twin_passes(example):
    test = ChaosTest.of(f"{example}:test_mended")
    for seed in range(3):
        assert test.run(test.draw(seed)).error is None
