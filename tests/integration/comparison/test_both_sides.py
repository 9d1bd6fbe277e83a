"""What a comparison does around its scenarios: clusters, repeats, garbage collection."""

import gc
from contextlib import contextmanager
from dataclasses import replace

import pytest

from integration.comparison.both_sides import compare_sides, settled_heap
from integration.comparison.runs import Run
from integration.comparison.verdict import Verdict
from integration.observations import Observation


def test_objects_from_before_a_comparison_are_not_collected_while_it_runs():
    before = [[] for _ in range(10_000)]
    with settled_heap():
        assert gc.get_freeze_count() > len(before)
        assert len(gc.get_objects()) < len(before)
    assert gc.get_freeze_count() == 0


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
        return self.runs.get(scenario.name, Run([Observation("step", error_code=repeat)]))


@pytest.fixture
def compare(make_scenario):
    """Return a function that compares scenarios, given as names with their configurations."""

    def compare(kafka, sim, scenarios, repeats=1):
        wanted = [replace(make_scenario(name), configs=configs) for name, configs in scenarios]
        seen = []
        results = compare_sides(
            kafka, sim, wanted, repeats=repeats, known=[], on_result=seen.append
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
    sim = ScriptedSide("sim", {"a": Run([Observation("step", error_code=2)])})
    (result,) = compare(ScriptedSide("kafka"), sim, [("a", ())], repeats=3)
    assert result.flakiness == "2 of 3 repeats differ"
