"""A failing schedule gets smaller as long as the same invariant fails, within its limits."""

from broker_sim_purgatory import VirtualClock

from broker_sim.chaos.random_run import Action, Schedule, draw_schedule
from broker_sim.chaos.report import as_test

from .outcomes import shrunk

LARGE = Schedule(
    9,
    brokers=4,
    partitions=3,
    producers=("acks_all", "acks_1", "idempotent"),
    consumers=2,
    latency_ms=20,
    actions=tuple(
        Action(100 * number + 7, kind, on, 1_000)
        for number, (kind, on) in enumerate(
            [
                ("pause", ("broker-1",)),
                ("kill", ("broker-2",)),
                ("cut_link", ("broker-3", "broker-1")),
                ("kill", ("broker-3",)),
                ("isolate", ("broker-4",)),
            ]
            * 4
        )
    ),
)


def kills_overlap(schedule):
    """Stand for a run that fails if brokers 2 and 3 are killed and a producer writes."""
    killed = {action.on for action in schedule.actions if action.kind == "kill"}
    return "lost" if {("broker-2",), ("broker-3",)} <= killed and schedule.producers else None


def test_only_what_the_failure_needs_is_left():
    small = shrunk(LARGE, "lost", kills_overlap).schedule
    assert sorted((action.kind, action.on) for action in small.actions) == [
        ("kill", ("broker-2",)),
        ("kill", ("broker-3",)),
    ]
    assert len(small.producers) == 1
    assert (small.consumers, small.partitions, small.brokers, small.latency_ms) == (0, 1, 3, 0)
    assert all(action.at_ms % 1_000 == 0 and action.for_ms <= 100 for action in small.actions)
    assert small.duration_ms == max(action.at_ms + action.for_ms for action in small.actions)


def test_another_failure_is_not_taken_for_the_same():
    def run(schedule):
        return "lost" if len(schedule.actions) > 10 else "other"

    assert len(shrunk(LARGE, "lost", run).schedule.actions) == 11


def test_tries_are_bounded():
    tries = []

    def run(schedule):
        tries.append(schedule)
        return kills_overlap(schedule)

    small = shrunk(LARGE, "lost", run, max_tries=5)
    assert small.tries == len(tries) == 5
    assert kills_overlap(small.schedule) == "lost"


def test_time_is_bounded():
    clock = VirtualClock()

    def run(schedule):
        clock.advance(1_000)
        return kills_overlap(schedule)

    assert shrunk(LARGE, "lost", run, max_ms=3_000, clock=clock).tries == 3


def test_printed_test_runs_and_has_the_same_schedule():
    for seed in range(20):
        schedule = draw_schedule(seed, power_loss=seed % 2 == 1)
        source = as_test(schedule, "replicas-agree", "", "return schedule")
        assert f'def test_seed_{seed}():\n    """It failed: replicas-agree."""\n' in source
        names = {"Schedule": Schedule}
        exec(source, names)
        assert names[f"test_seed_{seed}"]() == schedule
