"""The schedule of faults is drawn from its seed alone, and every step is a verb that there is."""

from broker_sim.cluster.verbs import Verbs
from broker_sim.control.verb import verbs_of
from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault

from .schedule import ERRORS, draw_schedule

VERBS = verbs_of(Verbs)


def test_a_seed_gives_the_same_steps_again():
    first, again = (draw_schedule(7, steps=168, duration_ms=600_000) for _ in range(2))
    assert first == again
    assert len(first) == 168
    assert first != draw_schedule(8, steps=168, duration_ms=600_000)


def test_steps_are_verbs_with_their_parameters_within_the_time():
    for step in draw_schedule(1, steps=1_000, duration_ms=60_000):
        assert 0 <= step.at_ms < step.at_ms + step.for_ms <= 60_000
        for call in filter(None, (step.do, step.undo)):
            if call.verb == "inject":
                Fault(**call.arguments)
            else:
                assert call.arguments.keys() <= VERBS[call.verb].parameters.keys()


def test_errors_are_those_of_kafka():
    assert all(name in ErrorCode.__members__ for names in ERRORS.values() for name in names)
