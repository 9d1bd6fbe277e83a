"""The bug of each application of examples/chaos is found and made small; its mended twin passes."""

from pathlib import Path

import pytest

from broker_sim.chaos import Schedule
from broker_sim.chaos.search import NamedTest

EXAMPLES = Path(__file__).parents[3] / "examples" / "chaos"
CRASH = """
    seed=0 workers=2 duration_ms=10000
    9000 crash worker-1 for=100
"""
SMALLEST = {
    "background_tasks": CRASH,
    "cache_across_rebalance": """
        seed=6 workers=2 duration_ms=12000
        4000 crash worker-2 for=8000
    """,
    "commit_before_work": CRASH,
    "copy_without_transactions": CRASH,
    "dead_letters": "seed=0 workers=2 duration_ms=12000\n3000 crash worker-2 for=100",
    "faststream_ack": "seed=0 workers=2 duration_ms=5000\n4500 fail worker-2 for=1000",
    "faststream_ack_first": "seed=0 workers=2 duration_ms=4000\n3100 crash worker-2 for=100",
    "graceful_stop": "seed=0 workers=2 duration_ms=12000\n9000 deploy workers value=rolling",
    "offsets_outside_transaction": CRASH,
    "outbox_relay": "seed=0 workers=2 duration_ms=12000\n3200 crash worker-1 for=100",
    "partition_lock": "seed=0 workers=2 duration_ms=12000\n5000 crash worker-1 for=100",
    "retry_topics": "seed=0 workers=2 duration_ms=12000\n3000 fail worker-2 for=1000",
    "retries_without_idempotence": """
        seed=4 workers=1 duration_ms=5000
        4000 lose brokers for=1000 value=Produce
    """,
    "windowed_sum": "seed=0 workers=2 duration_ms=12000\n5000 crash worker-1 for=3000",
}
"""A fault that shows each bug, like the one the search leaves; longer where its moment depends on the hash seed."""
MOST = 40


@pytest.fixture(params=SMALLEST)
def example(request, monkeypatch):
    """The name of each example, whose module can be imported."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return request.param


def test_every_example_is_played():
    assert sorted(SMALLEST) == sorted(path.stem for path in EXAMPLES.glob("*_*.py"))


def test_one_fault_is_enough_for_the_bug_and_repeats(example):
    test, schedule = NamedTest.of(f"{example}:test_wrong"), Schedule.parse(SMALLEST[example])
    once, again = test.run(schedule), test.run(schedule)
    assert once.invariant is not None
    assert (once.invariant, once.digest) == (again.invariant, again.digest)


def test_mended_twin_passes(example):
    test = NamedTest.of(f"{example}:test_mended")
    for schedule in (Schedule.parse(SMALLEST[example]), test.draw(0), test.draw(1)):
        assert test.run(schedule).error is None


@pytest.mark.soak(part="chaos")
@pytest.mark.parametrize("first", [0, 10_000])
def test_bug_is_found_shrunk_and_repeats(example, first):
    test = NamedTest.of(f"{example}:test_wrong")
    schedules = map(test.draw, range(first, first + MOST))
    failure = next(filter(None, map(test.examine, schedules)), None)
    assert failure is not None
    assert len(failure.small.schedule.actions) <= 2, failure
    assert failure.repeats


def test_printed_test_of_each_example_fails(example):
    test, schedule = NamedTest.of(f"{example}:test_wrong"), Schedule.parse(SMALLEST[example])
    source = test.examine(schedule, shrinks=False).as_test()
    names = {}
    exec(source, names)
    with pytest.raises(AssertionError):
        names[f"test_seed_{schedule.seed}"]()
    assert [name for name in names if name.startswith("test_")] == [f"test_seed_{schedule.seed}"]
