"""Groups in random runs: what must hold holds, and defects of the coordinator are found."""

import pytest

from broker_sim.chaos.random_run import draw_schedule, run_schedule
from broker_sim.chaos.random_run.checks.group_history import ClassicHistory
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.coordinator.runtime import CoordinatorContext
from broker_sim.group.classic.classic_group import ClassicGroup
from broker_sim.group.classic.rebalance import Rebalance
from broker_sim.group.offset_fetch import OffsetView
from broker_sim.group.shards import GroupShards

from .groups_alone import GroupRuns, first_failure, group_of, writes_are_answered_before_the_replicas_have_them

RUNS = GroupRuns("group_members")
CALM = group_of(group_members=4)
STALLED = [group_of(duration_ms=9_000, seed=seed, group_members=4) for seed in range(12)]


def test_group_goes_through_generations_and_commits():
    summary = run_schedule(CALM)
    assert summary.generations > 2
    assert summary.commits > 10


def test_some_drawn_schedules_have_groups():
    drawn = [draw_schedule(seed) for seed in range(20)]
    assert {bool(schedule.group_members) for schedule in drawn} == {True, False}
    assert any(action.kind == "move_groups" for each in drawn for action in each.actions)


def test_partition_of_two_members_in_one_generation_is_told():
    history = ClassicHistory()
    history.add_owner(1, "one", [0, 1])
    history.add_owner(2, "two", [0, 1])
    history.add_owner(2, "two", [0])
    with pytest.raises(InvariantViolationError, match="given to two and to one in generation 2"):
        history.add_owner(2, "one", [1])


def test_offset_that_went_back_is_told_to_the_newest_owner():
    history = ClassicHistory()
    history.add_owner(2, "one", [0])
    history.add_commit(0, 7)
    history.check_committed("one", 1, 0, 3)  # it does not know that it is no member any more
    history.check_committed("one", 2, 0, 7)
    with pytest.raises(InvariantViolationError, match="offset 7 of partition 0 was committed"):
        history.check_committed("one", 2, 0, 6)


def log_is_not_loaded(monkeypatch):
    """A new coordinator begins with nothing."""
    original = GroupShards.make_shard

    def make_shard(self, *arguments):
        shard = original(self, *arguments)
        monkeypatch.setattr(shard, "replay", lambda record, offset, producer_id=-1: None, raising=True)
        return shard

    monkeypatch.setattr(GroupShards, "make_shard", make_shard)


def generations_are_not_written(monkeypatch):
    """Members get their assignments, of which the log hears nothing."""
    original = CoordinatorContext.carry_out

    def carry_out(self, result, *arguments):
        if not result.replays:
            result.records = ()
        original(self, result, *arguments)

    monkeypatch.setattr(CoordinatorContext, "carry_out", carry_out)


def members_of_old_generations_may_commit(monkeypatch):
    """Nobody asks who commits."""
    monkeypatch.setattr(ClassicGroup, "validate_offset_commit", lambda *_: None)


def offsets_are_shown_as_of_the_load(monkeypatch):
    """OffsetFetch without `require_stable` goes on to show what a new coordinator has found."""
    original, view = GroupShards.loaded, OffsetView.__init__
    shown = {}

    def loaded(self, context):
        shown[context.shard.offsets] = context.high_watermark
        original(self, context)

    def look(self, query, offsets, transactional, high_watermark, image):
        view(self, query, offsets, transactional, shown[offsets], image)

    monkeypatch.setattr(GroupShards, "loaded", loaded)
    monkeypatch.setattr(OffsetView, "__init__", look)


def assignments_are_swapped(monkeypatch):
    """Who asks for the assignment again gets somebody else's."""
    original = Rebalance.sync_received

    def sync_received(self, group, member_id):
        assignments = [member.assignment for member in group.members.values()]
        if group.state_name == "Stable":
            group.members[member_id].assignment = max(assignments, key=len)
        original(self, group, member_id)

    monkeypatch.setattr(Rebalance, "sync_received", sync_received)


def followers_are_not_told_of_a_generation(monkeypatch):
    """Only the leader's join is answered."""
    original = ClassicGroup.answer_join

    def answer_join(self, member, response):
        if response.error_code or response.members:
            original(self, member, response)
        else:
            self._park_join(member, None)

    monkeypatch.setattr(ClassicGroup, "answer_join", answer_join)


FOUND_BY = [
    (log_is_not_loaded, RUNS.moved, {"one-owner-per-generation", "committed-offsets-stay"}),
    (generations_are_not_written, RUNS.moved, {"one-owner-per-generation"}),
    (
        writes_are_answered_before_the_replicas_have_them,
        RUNS.cut_off,
        {"one-owner-per-generation", "committed-offsets-stay"},
    ),
    (members_of_old_generations_may_commit, STALLED, {"committed-offsets-stay"}),
    (assignments_are_swapped, RUNS.moved, {"one-owner-per-generation"}),
    (followers_are_not_told_of_a_generation, [CALM], {"requests-are-answered"}),
    (offsets_are_shown_as_of_the_load, RUNS.moved, {"committed-offsets-stay"}),
]


@pytest.mark.parametrize(
    ("mutant", "schedules", "invariants"), FOUND_BY, ids=lambda each: getattr(each, "__name__", "")
)
def test_defect_is_found_by_its_invariant(mutant, schedules, invariants, monkeypatch):
    mutant(monkeypatch)
    assert first_failure(schedules) in invariants


def test_sound_coordinator_passes_where_the_mutants_are_found():
    assert first_failure([CALM, RUNS.moved[2], *RUNS.cut_off[:2]]) is None
