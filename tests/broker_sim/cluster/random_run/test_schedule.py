"""A schedule follows from its seed and stays within its run."""

from broker_sim.cluster.random_run import CONTROLLER, draw_schedule

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
            brokers = action.on[1:] if action.kind == "transfer" else action.on
            assert {*brokers} <= {CONTROLLER, *range(1, schedule.brokers + 1)}


def test_every_kind_of_fault_and_of_topic_is_drawn():
    kinds = {action.kind for schedule in MANY for action in schedule.actions}
    assert kinds == {
        "pause", "kill", "stop", "isolate", "cut", "slow", "cut_requests", "cut_responses",
        "shift_clock", "transfer", "move_group", "move_transactions",
    }  # fmt: skip
    assert {schedule.group_members for schedule in MANY} == {0, 2, 3, 5}
    assert {schedule.min_insync_replicas for schedule in MANY} == {1, 2, 3}
    assert {schedule.replication_factor for schedule in MANY} == {1, 2, 3}
    assert {schedule.unclean_elections for schedule in MANY} == {False, True}
    producers = {producer for schedule in MANY for producer in schedule.producers}
    assert {(p.acks, p.idempotent) for p in producers} == {
        (-1, False), (-1, True), (1, False), (0, False)
    }  # fmt: skip


def test_faults_of_several_brokers_overlap_often():
    def most_at_once(schedule):
        faults = [a for a in schedule.actions if a.kind in {"pause", "kill", "stop", "isolate"}]
        return max(
            (
                len({a.on for a in faults if a.at_ms <= one.at_ms < a.at_ms + a.for_ms})
                for one in faults
            ),
            default=0,
        )

    most = [most_at_once(schedule) for schedule in MANY]
    assert sum(count >= 2 for count in most) > len(MANY) // 4
    assert sum(count >= 3 for count in most) > len(MANY) // 20
