"""A schedule follows from its seed and stays within its run."""

import random

from broker_sim.chaos.faults.action import BROKERS, CONTROLLER, GROUPS, TRANSACTIONS, broker_names
from broker_sim.chaos.faults.cluster_faults import ROLES
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.plots import FaultScope
from broker_sim.chaos.random_run import draw_schedule
from broker_sim.chaos.random_run.drawing import draw_faults
from broker_sim.chaos.random_run.schedule import ACKS

MANY = [draw_schedule(seed) for seed in range(300)]


def test_same_seed_draws_the_same_schedule_and_other_seeds_others():
    assert draw_schedule(4) == MANY[4]
    assert len(set(MANY)) == len(MANY)


def test_actions_are_in_order_and_end_with_the_run():
    for schedule in MANY:
        assert list(schedule.actions) == sorted(schedule.actions)
        assert all(a.at_ms + a.for_ms <= schedule.duration_ms for a in schedule.actions)


def test_actions_name_brokers_that_there_are():
    for schedule in MANY:
        for action in schedule.actions:
            assert {*action.on} <= {*ROLES, BROKERS, CONTROLLER, *broker_names(schedule.brokers)}


def test_faults_are_aimed_at_coordinators_only_where_there_are_clients_of_theirs():
    for schedule in MANY:
        on = {node for action in schedule.actions for node in action.on}
        assert GROUPS not in on or schedule.has_groups
        assert TRANSACTIONS not in on or schedule.transactional


def test_faults_do_not_depend_on_who_uses_the_cluster():
    scope = FaultScope(3, 2, 4_000)
    assert draw_faults(random.Random(1), scope) == draw_faults(random.Random(1), scope)


def test_each_seed_leaves_kinds_of_faults_and_of_clients_out():
    kinds = [len({action.kind for action in schedule.actions}) for schedule in MANY]
    assert max(kinds) < 10
    clients = [
        sum(map(bool, (each.producers, each.group_members, each.consumer_members, each.transactional))) for each in MANY
    ]
    assert min(clients) == 1
    assert sum(count > 2 for count in clients) < len(MANY) // 4


def test_controller_is_an_end_of_links_only():
    for schedule in MANY:
        for action in schedule.actions:
            assert CONTROLLER not in action.on or action.kind in {"cut_link", "slow_link"}


def test_every_kind_of_fault_and_of_topic_is_drawn():
    kinds = {action.kind for schedule in MANY for action in schedule.actions}
    assert kinds == {name for name, kind in KINDS.items() if not kind.is_of_workers} - {"lose_power", "hold", "damage"}
    assert {schedule.group_members for schedule in MANY} == {0, 2, 3, 5}
    assert {schedule.min_insync_replicas for schedule in MANY} == {1, 2, 3}
    assert {schedule.replication_factor for schedule in MANY} == {1, 2, 3}
    assert {schedule.unclean_elections for schedule in MANY} == {False, True}
    assert {producer for schedule in MANY for producer in schedule.producers} == set(ACKS)


def test_faults_of_several_brokers_overlap_often():
    def most_at_once(schedule):
        faults = [a for a in schedule.actions if a.kind in {"pause", "kill", "stop", "isolate"}]
        return max((sum(a.at_ms <= one.at_ms < a.at_ms + a.for_ms for a in faults) for one in faults), default=0)

    most = [most_at_once(schedule) for schedule in MANY]
    assert sum(count >= 2 for count in most) > len(MANY) // 4
    assert sum(count >= 3 for count in most) > len(MANY) // 20
