"""Actions name brokers by what they are at that moment."""

import pytest

from broker_sim.cluster.random_run import FOLLOWER, GROUPS, LEADER, THIRD, Action
from broker_sim.cluster.random_run.faults.actions import Actions
from broker_sim.cluster.virtual.invariants import InvariantViolationError, left_out, violated
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster


def test_action_on_a_role_is_done_to_whoever_has_it_then():
    cluster = VirtualCluster(seed=3)
    cluster.create_topic("t", 1, 3)
    actions = Actions(cluster, "t")
    leader = cluster.leader("t", 0)
    followers = [each for each in (1, 2, 3) if each != leader]
    actions.schedule(
        [
            Action(10, "pause", (FOLLOWER,), 100),
            Action(10, "cut", (LEADER, THIRD), 100),
            Action(10, "pause", (GROUPS,), 100),
        ]
    )
    cluster.advance(50)
    replicas = cluster.nodes.controller.image.topics["t"].partitions[0].replicas
    first, second = (each for each in replicas if each != leader)
    assert sorted((first, second)) == followers
    assert actions.done == 2  # nobody coordinates groups yet
    assert {each for each in (1, 2, 3) if not cluster.nodes.nodes[each].process.runs} == {first}
    assert set(cluster.nodes.links.faults) == {(leader, second)}
    cluster.advance(100)
    assert not cluster.nodes.links.faults
    assert cluster.nodes.nodes[first].process.runs


def test_invariant_that_is_left_out_lets_the_run_go_on():
    with left_out("one"):
        violated("one", "it is not looked at")
        with pytest.raises(InvariantViolationError, match="another"):
            violated("two", "another one is")
    with pytest.raises(InvariantViolationError, match="it is again"):
        violated("one", "it is again")
