"""Groups of the consumer protocol in random runs: what must hold holds, and defects are found."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from broker_sim.chaos.random_run import draw_schedule, run_schedule
from broker_sim.chaos.random_run.checks.group_history import ModernHistory, Term
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.consumer.current_assignment import CurrentAssignmentBuilder
from broker_sim.group.modern.settings import GroupSettings
from broker_sim.group.service import GroupCoordinatorService
from broker_sim.group.shards import GroupShards

from .groups_alone import GroupRuns, first_failure, writes_are_answered_before_the_replicas_have_them

RUNS = GroupRuns("consumer_members")


def test_group_goes_through_epochs_and_commits():
    summary = run_schedule(RUNS.calm[0])
    assert summary.epochs > 5
    assert summary.commits > 20


def test_some_drawn_schedules_have_members_of_each_protocol():
    drawn = [draw_schedule(seed) for seed in range(40)]
    groups = {(each.group_members > 0, each.consumer_members > 0) for each in drawn}
    assert groups == {(True, True), (True, False), (False, True), (False, False)}


def test_partition_that_is_owned_twice_in_an_epoch_is_told():
    history = ModernHistory(SimpleNamespace(removed_ms=-1))
    history.add_owner("one", 3, [0, 1], 100, Term(100, 1_100))
    history.give_up("one", kept=[0])
    with pytest.raises(InvariantViolationError, match="one and two own partition 1 in epoch 3"):
        history.add_owner("two", 3, [1], 200, Term(200, 1_200))


def test_partition_counts_as_owned_until_it_is_given_up_or_its_owner_may_be_fenced():
    history = ModernHistory(SimpleNamespace(removed_ms=-1))
    history.add_owner("one", 3, [0, 1], 100, Term(100, 1_100))
    history.give_up("one", kept=[0])
    history.add_owner("two", 4, [1], 1_099, Term(1_099, 2_000))
    with pytest.raises(InvariantViolationError, match="two got partition 0 in epoch 4, which one"):
        history.add_owner("two", 4, [0], 1_099, Term(1_099, 2_000))
    history.add_owner("two", 5, [0], 1_100, Term(1_100, 2_000))
    history.add_owner("one", 3, [0], 1_101, Term(1_101, 3_000))  # an answer that was late: two has it
    with pytest.raises(InvariantViolationError, match="which two has owned since epoch 5"):
        history.add_owner("three", 6, [0], 1_999, Term(1_999, 3_000))


def test_partition_is_given_on_at_once_when_its_owner_was_removed():
    disturbances = SimpleNamespace(removed_ms=-1)
    history = ModernHistory(disturbances)
    history.add_owner("one", 3, [0], 100, Term(50, 1_050))
    disturbances.removed_ms = 49
    with pytest.raises(InvariantViolationError, match="two got partition 0 in epoch 4, which one"):
        history.add_owner("two", 4, [0], 200, Term(150, 1_150))
    disturbances.removed_ms = 50
    history.add_owner("two", 4, [0], 200, Term(150, 1_150))


def test_offset_that_went_back_is_told_to_the_owner():
    history = ModernHistory(SimpleNamespace(removed_ms=-1))
    history.add_owner("one", 3, [0], 100, Term(100, 1_100))
    history.add_commit(0, 7)
    history.check_committed("two", 2, 0, 3)  # it does not know that it owns nothing any more
    history.check_committed("one", 3, 0, 7)
    with pytest.raises(InvariantViolationError, match="offset 7 of partition 0 was committed"):
        history.check_committed("one", 3, 0, 6)


def partitions_are_given_to_the_next_owner_at_once(monkeypatch):
    """Nobody waits until the owner has given a partition up."""
    monkeypatch.setattr(ConsumerGroup, "partition_epoch", lambda *_: -1)


def revocations_are_not_waited_for(monkeypatch):
    """A member counts as having given up what it was told to."""
    monkeypatch.setattr(CurrentAssignmentBuilder, "_still_owns", lambda *_: False)


def member_epochs_are_forgotten_at_load(monkeypatch):
    """A new coordinator begins with the first epoch of each member."""
    original = GroupShards.loaded

    def loaded(self, context):
        for group in context.shard.groups.values():
            for member_id in list(getattr(group, "targets", ())):
                member = group.members[member_id]
                group.update_member(replace(member, member_epoch=1, previous_member_epoch=0))
        original(self, context)

    monkeypatch.setattr(GroupShards, "loaded", loaded)


def sessions_end_too_early(monkeypatch):
    """Members are fenced after a quarter of their session."""
    original = GroupSettings.session_timeout_ms
    monkeypatch.setattr(GroupSettings, "session_timeout_ms", lambda self, group_id: original(self, group_id) // 4)


def members_commit_in_any_epoch(monkeypatch):
    """Nobody asks who commits."""
    monkeypatch.setattr(ConsumerGroup, "validate_offset_commit", lambda *_: None)


def heartbeats_are_answered_twice(monkeypatch):
    """Each write answers, and so does what it does afterwards."""
    original = GroupCoordinatorService.consumer_group_heartbeat

    def heartbeat(self, request, client, respond, *arguments):
        original(self, request, client, lambda answer: (respond(answer), respond(answer)), *arguments)

    monkeypatch.setattr(GroupCoordinatorService, "consumer_group_heartbeat", heartbeat)


def first_heartbeats_are_not_answered(monkeypatch):
    """Who gets the first epoch of a group hears nothing."""
    original = GroupCoordinatorService.consumer_group_heartbeat

    def heartbeat(self, request, client, respond, *arguments):
        def answer(response):
            if response.member_epoch != 2:
                respond(response)

        original(self, request, client, answer, *arguments)

    monkeypatch.setattr(GroupCoordinatorService, "consumer_group_heartbeat", heartbeat)


FOUND_BY = [
    (
        partitions_are_given_to_the_next_owner_at_once,
        RUNS.calm,
        {"partitions-are-given-up-first", "one-owner-per-epoch"},
    ),
    (revocations_are_not_waited_for, RUNS.calm, {"partitions-are-given-up-first", "one-owner-per-epoch"}),
    (member_epochs_are_forgotten_at_load, RUNS.moved[2:], {"live-members-stay"}),
    (sessions_end_too_early, RUNS.calm, {"live-members-stay", "partitions-are-given-up-first"}),
    (
        writes_are_answered_before_the_replicas_have_them,
        RUNS.cut_off,
        {"live-members-stay", "member-epochs-grow", "one-owner-per-epoch"},
    ),
    (members_commit_in_any_epoch, RUNS.killed[2:], {"committed-offsets-stay"}),
    (heartbeats_are_answered_twice, RUNS.calm, {"AssertionError", "answered-once"}),
    (first_heartbeats_are_not_answered, RUNS.calm, {"requests-are-answered"}),
]


@pytest.mark.parametrize(
    ("mutant", "schedules", "invariants"), FOUND_BY, ids=lambda each: getattr(each, "__name__", "")
)
def test_defect_is_found_by_its_invariant(mutant, schedules, invariants, monkeypatch):
    mutant(monkeypatch)
    assert first_failure(schedules) in invariants


def test_sound_coordinator_passes_where_the_mutants_are_found():
    schedules = [*RUNS.calm[:2], *RUNS.moved[2:4], *RUNS.killed[2:], *RUNS.cut_off[2:4]]
    assert first_failure(schedules) is None
