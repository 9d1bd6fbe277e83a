"""Actions name brokers by what they are at that moment."""

import pytest

from broker_sim.chaos.faults.action import FOLLOWER, GROUPS, LEADER, THIRD, Action
from broker_sim.chaos.random_run.disturbances import Disturbances
from broker_sim.cluster.virtual.invariants import InvariantViolationError, left_out, violated
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.runtime.process import ProcessState


def test_action_on_a_role_is_done_to_whoever_has_it_then():
    cluster = VirtualCluster(seed=3)
    cluster.create_topic("t", 1, 3)
    disturbances = Disturbances(cluster)
    leader = cluster.leader("t", 0)
    followers = [each for each in (1, 2, 3) if each != leader]
    disturbances.schedule(
        [
            Action(10, "pause", (FOLLOWER,), 100),
            Action(10, "cut_link", (LEADER, THIRD), 100),
            Action(10, "pause", (GROUPS,), 100),
        ]
    )
    cluster.advance(50)
    replicas = cluster.nodes.controller.image.topics["t"].partitions[0].replicas
    first, second = (each for each in replicas if each != leader)
    assert sorted((first, second)) == followers
    assert disturbances.done == 2  # nobody coordinates groups yet
    assert {each for each in (1, 2, 3) if not cluster.nodes.nodes[each].process.runs} == {first}
    assert set(cluster.nodes.links.faults) == {(leader, second)}
    cluster.advance(100)
    assert not cluster.nodes.links.faults
    assert cluster.nodes.nodes[first].process.runs


@pytest.fixture
def cluster():
    """Return a cluster with a topic whose replicas are in sync."""
    made = VirtualCluster(seed=3)
    made.create_topic("t", 1, 3)
    made.advance(1_000)
    return made


def test_roll_is_over_when_all_brokers_are_back(cluster):
    disturbances = Disturbances(cluster)
    disturbances.schedule([Action.parse("10 roll brokers")])
    began_ms = cluster.now_ms
    cluster.advance(20)
    assert disturbances.quiet_since_ms is None
    cluster.run_until(lambda: disturbances.quiet_since_ms is not None)
    assert len(cluster.nodes.brokers) == 3
    assert cluster.nodes.is_in_sync
    assert not any(disturbances.is_undisturbed(each, began_ms) for each in (1, 2, 3))
    assert all(disturbances.is_undisturbed(each, cluster.now_ms) for each in (1, 2, 3))


def test_pauses_of_one_broker_overlap_when_it_was_killed_meanwhile(cluster):
    disturbances = Disturbances(cluster)
    lines = ("10 pause broker-2 for=500", "50 kill broker-2 for=50", "300 pause broker-2 for=400")
    disturbances.schedule(map(Action.parse, lines))
    cluster.advance(310)
    assert disturbances.done == 3
    cluster.run_until(lambda: disturbances.quiet_since_ms is not None)
    assert disturbances.paused_ms == {1: 0, 2: 900, 3: 0}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("full_disk broker-2 for=500", "kill broker-2 for=2000"),
        ("full_disk broker-2 for=2000", "kill broker-2 for=500"),
        ("stop broker-2 for=500", "kill broker-2 for=2000"),
        ("stop broker-2 for=2000", "kill broker-2 for=500"),
        ("roll broker-2", "kill broker-2 for=2000"),
    ],
)
def test_broker_is_down_until_the_last_fault_that_holds_it_down_is_over(cluster, first, second):
    disturbances = Disturbances(cluster)
    disturbances.schedule([Action.parse(f"10 {first}"), Action.parse(f"11 {second}")])
    cluster.advance(150)
    assert disturbances.done == 2
    for _ in range(18):
        assert cluster.nodes.node(2).state is ProcessState.DEAD
        cluster.advance(100)
    cluster.run_until(lambda: disturbances.quiet_since_ms is not None)
    assert len(cluster.nodes.brokers) == 3


@pytest.mark.parametrize(
    ("action", "hampered"),
    [
        ("pause broker-2 for=100", {2}),
        ("isolate broker-2", {2}),
        ("full_disk broker-2 for=500", {2}),
        ("slow_disk broker-2 for=100 value=20", {2}),
        ("lag broker-2 for=100 value=50", {2}),
        ("cut_link controller broker-2 for=100", {2}),
        ("cut_link broker-1 broker-2 for=100", set()),
        ("unreachable broker-2 for=100", set()),
        ("lose brokers for=100 value=Produce", set()),
    ],
)
def test_broker_that_cannot_work_is_disturbed_as_long_as_the_fault_lasts(cluster, action, hampered):
    disturbances = Disturbances(cluster)
    disturbances.schedule([Action.parse(f"10 {action}")])
    began_ms = cluster.now_ms
    cluster.advance(11)
    brokers = {1, 2, 3}
    assert {each for each in brokers if not disturbances.is_undisturbed(each, began_ms)} == hampered
    cluster.run_until(lambda: disturbances.quiet_since_ms is not None)
    assert all(disturbances.is_undisturbed(each, cluster.now_ms) for each in brokers)


def test_invariant_that_is_left_out_lets_the_run_go_on():
    with left_out("one"):
        violated("one", "it is not looked at")
        with pytest.raises(InvariantViolationError, match="another"):
            violated("two", "another one is")
    with pytest.raises(InvariantViolationError, match="it is again"):
        violated("one", "it is again")
