"""The faults of one scenario: every verb of the list reaches the cluster, and all are undone."""

import inspect

import pytest
from broker_sim_integration.broker_verbs import BrokerVerbs, Fault
from broker_sim_integration.cluster_under_test.faults import UNDONE_BY, Faults
from broker_sim_integration.reference.clusters.cluster import ReferenceCluster

from broker_sim import Cluster

VERBS = {name for name, _ in inspect.getmembers(BrokerVerbs, inspect.isfunction) if name[0] != "_"}


class Recorder:
    """Verbs that only remember their calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda broker, **options: self.calls.append((name, broker, *options.items()))


def call_of(verb, broker):
    """Return how the recorder shows a call: a scenario does not wait until a broker serves."""
    return (verb, broker, ("wait", False)) if verb == "start" else (verb, broker)


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def faults(recorder):
    return Faults(recorder)


def test_every_verb_of_the_list_can_be_called_and_undone():
    assert {*UNDONE_BY, *UNDONE_BY.values()} == VERBS
    assert {name for name in vars(Faults) if name in VERBS} == VERBS
    assert {fault.replace(" ", "_") for fault in Fault} == set(UNDONE_BY)


def test_both_sides_have_every_verb():
    assert {verb for verb in VERBS if not hasattr(ReferenceCluster, verb)} == set()
    assert {verb for verb in VERBS if not hasattr(Cluster, verb)} == set()


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_verb_reaches_the_cluster(faults, recorder, verb):
    getattr(faults, verb)(2)
    assert recorder.calls == [call_of(verb, 2)]


@pytest.mark.parametrize(("verb", "undo"), UNDONE_BY.items())
def test_fault_is_undone_once(faults, recorder, verb, undo):
    getattr(faults, verb)(3)
    assert not faults.none_now
    faults.undo_all()
    faults.undo_all()
    assert recorder.calls == [(verb, 3), call_of(undo, 3)]
    assert faults.none_now
    assert faults.any_so_far


@pytest.mark.parametrize("verb", UNDONE_BY)
def test_fault_that_a_scenario_ended_is_not_undone_again(faults, recorder, verb):
    getattr(faults, verb)(3)
    getattr(faults, UNDONE_BY[verb])(3)
    faults.undo_all()
    assert recorder.calls == [(verb, 3), call_of(UNDONE_BY[verb], 3)]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_broker_that_ended_is_only_started_again(faults, recorder, end):
    faults.pause(2)
    faults.disconnect_clients(2)
    getattr(faults, end)(2)
    faults.undo_all()
    assert recorder.calls[3:] == [call_of("start", 2)]


@pytest.mark.parametrize(
    ("verb", "answers"),
    [("pause", False), ("stop", False), ("kill", False), ("disconnect_clients", False), ("disconnect", True)],
)
def test_clients_get_answers_unless_the_fault_is_in_between(faults, verb, answers):
    assert faults.can_answer(2)
    getattr(faults, verb)(2)
    assert faults.can_answer(2) is answers
    assert faults.can_answer(3)
    faults.undo_all()
    assert faults.can_answer(2)
