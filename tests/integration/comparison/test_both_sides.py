"""What a comparison does around its scenarios: clusters and repeats."""

import gc
from contextlib import contextmanager
from dataclasses import replace

import pytest
from broker_sim_integration.comparison.both_sides import compare_sides
from broker_sim_integration.comparison.machine import Stalls
from broker_sim_integration.comparison.runs import Run
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.observations import Observation, at_once, at_timeout


class ScriptedSide:
    """A side whose runs are given by scenario; remembers the configurations of its clusters."""

    def __init__(self, name, runs=()):
        self.name = name
        self.runs = dict(runs)
        self.opened = []
        self.open_now = 0

    @contextmanager
    def open(self, configs):
        self.opened.append(configs)
        self.open_now += 1
        yield self
        self.open_now -= 1

    def run(self, scenario, repeat):
        assert self.open_now == 1
        found = self.runs.get(scenario.name, Run([Observation("step", timing=at_once(), error_code=repeat)]))
        return found[repeat - 1] if isinstance(found, list) else found


pytestmark = pytest.mark.usefixtures("collects_little")


@pytest.fixture
def compare(make_scenario):
    """Return a function that compares scenarios, given as names with their configurations."""

    def compare(kafka, sim, scenarios, repeats=1, control=None):
        wanted = [replace(make_scenario(name), configs=configs) for name, configs in scenarios]
        seen = []
        results = compare_sides(
            kafka, sim, wanted, repeats=repeats, known=[], on_result=seen.append, control=control or Stalls()
        )
        assert {id(one) for one in seen} == {id(one) for one in results}
        assert [one.scenario.name for one in results] == [name for name, _ in scenarios]
        return results

    return compare


def test_scenarios_with_equal_configurations_share_a_cluster(compare):
    kafka, sim = ScriptedSide("kafka"), ScriptedSide("sim")
    small = (("num.partitions", "1"),)
    compare(kafka, sim, [("a", small), ("b", ()), ("c", small)])
    assert kafka.opened == sim.opened == [(), small]


def test_trouble_on_either_side_gets_new_clusters(compare):
    kafka, sim = ScriptedSide("kafka"), ScriptedSide("sim", {"b": Run(trouble="it crashed")})
    results = compare(kafka, sim, [("a", ()), ("b", ()), ("c", ())])
    assert kafka.opened == sim.opened == [(), ()]
    assert [one.verdict for one in results] == [Verdict.AGREED, Verdict.DIFFERED, Verdict.AGREED]


def test_every_repeat_is_compared(compare):
    sim = ScriptedSide("sim", {"a": Run([Observation("step", timing=at_once(), error_code=2)])})
    (result,) = compare(ScriptedSide("kafka"), sim, [("a", ())], repeats=3)
    assert result.flakiness == "2 of 3 repeats differ"


class FreezingSide(ScriptedSide):
    """Remembers how many objects no collection looked at while its scenarios were played."""

    frozen = ()

    def run(self, scenario, repeat):
        self.frozen = (*self.frozen, gc.get_freeze_count())
        return super().run(scenario, repeat)


def test_collections_pass_over_old_objects_while_scenarios_are_played(compare):
    gc.unfreeze()
    kafka, sim = FreezingSide("kafka"), FreezingSide("sim")
    compare(kafka, sim, [("a", ()), ("b", ())])
    assert all(kafka.frozen)
    assert all(sim.frozen)
    assert len(sim.frozen) == 2
    assert gc.get_freeze_count() == 0


IN_TIME = Run([Observation("step", elapsed_ms=501, answered_ms=1_001, timing=at_timeout(500))])
LATE = Run([Observation("step", elapsed_ms=800, answered_ms=1_300, timing=at_timeout(500))])


def stalled(since_ms, until_ms):
    control = Stalls()
    control.wait_until(since_ms)
    control.woke(until_ms)
    return control


def test_a_late_scenario_is_repeated_until_the_majority_is_clear(compare):
    kafka = ScriptedSide("kafka", {"a": IN_TIME, "b": IN_TIME})
    sim = ScriptedSide("sim", {"a": [LATE, IN_TIME, IN_TIME], "b": [LATE, LATE]})
    forgiven, late = compare(kafka, sim, [("a", ()), ("b", ())])
    assert (forgiven.verdict, len(forgiven.sim)) == (Verdict.AGREED, 3)
    assert (late.verdict, len(late.sim)) == (Verdict.LATE, 2)


def test_an_outlier_while_the_control_timer_stalled_is_excused(compare):
    kafka, sim = ScriptedSide("kafka", {"a": IN_TIME}), ScriptedSide("sim", {"a": LATE})
    (result,) = compare(kafka, sim, [("a", ())], control=stalled(1_010, 1_290))
    assert (result.verdict, len(result.sim)) == (Verdict.AGREED, 1)
    assert result.sim[0].observations[0].stalled_ms == 280


def test_what_keeps_both_processes_from_running_is_excused_once(compare):
    starved = replace(LATE, starved=[(1_010, 1_100), (1_280, 1_295)])
    kafka, sim = ScriptedSide("kafka", {"a": IN_TIME}), ScriptedSide("sim", {"a": starved})
    (result,) = compare(kafka, sim, [("a", ())], control=stalled(1_050, 1_290))
    assert result.sim[0].observations[0].stalled_ms == 285


def test_a_stall_before_it_was_due_excuses_nothing(compare):
    kafka, sim = ScriptedSide("kafka", {"a": IN_TIME}), ScriptedSide("sim", {"a": [LATE, LATE]})
    (result,) = compare(kafka, sim, [("a", ())], control=stalled(600, 1_000))
    assert result.verdict is Verdict.LATE


def test_a_recorded_answer_keeps_the_stall_of_its_own_run(compare):
    recorded = Run([Observation("step", elapsed_ms=800, timing=at_timeout(500), stalled_ms=280)])
    kafka, sim = ScriptedSide("kafka", {"a": recorded}), ScriptedSide("sim", {"a": IN_TIME})
    (result,) = compare(kafka, sim, [("a", ())])
    assert result.verdict is Verdict.AGREED
