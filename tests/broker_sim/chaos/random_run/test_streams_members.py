"""Streams groups in random runs: what must hold holds, and defects are found."""

from dataclasses import replace

import pytest

from broker_sim.chaos.random_run import draw_schedule, run_schedule
from broker_sim.group.modern.settings import GroupSettings
from broker_sim.group.streams.current_assignment import FreeForMember
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.group.streams.streams_groups import StreamsGroups

from .groups_alone import KILLS, GroupRuns, first_failure, group_of, writes_are_answered_before_the_replicas_have_them

RUNS = GroupRuns("streams_members")


def test_group_goes_through_epochs_and_commits():
    summary = run_schedule(RUNS.calm[0])
    assert summary.streams_epochs > 5
    assert summary.commits > 20


def test_some_drawn_schedules_have_streams_members():
    drawn = [draw_schedule(seed).streams_members for seed in range(60)]
    assert {0, 2, 3, 4} == set(drawn)


def tasks_are_given_to_the_next_owner_at_once(monkeypatch):
    """Nobody waits until the owner has given a task up."""
    monkeypatch.setattr(FreeForMember, "for_active", lambda *_: True)


def sessions_end_too_early(monkeypatch):
    """Members are fenced after a quarter of their session."""
    original = GroupSettings.session_timeout_ms
    monkeypatch.setattr(GroupSettings, "session_timeout_ms", lambda self, group_id: original(self, group_id) // 4)


def members_commit_in_any_epoch(monkeypatch):
    """Nobody asks who commits."""
    monkeypatch.setattr(StreamsGroup, "validate_offset_commit", lambda *_args, **_named: None)


def next_coordinator_forgets_the_epochs_before(monkeypatch):
    """Members that are loaded have no epoch before their own."""
    original = StreamsGroups.on_loaded

    def on_loaded(self, group):
        for member in list(group.members.values()):
            group.update_member(replace(member, previous_member_epoch=-1))
        original(self, group)

    monkeypatch.setattr(StreamsGroups, "on_loaded", on_loaded)


FOUND_BY = [
    (tasks_are_given_to_the_next_owner_at_once, RUNS.calm, {"partitions-are-given-up-first", "one-owner-per-epoch"}),
    (sessions_end_too_early, RUNS.calm, {"live-members-stay", "partitions-are-given-up-first"}),
    (
        members_commit_in_any_epoch,
        [group_of(*KILLS, duration_ms=9_000, seed=12, streams_members=4)],
        {"committed-offsets-stay"},
    ),
    (next_coordinator_forgets_the_epochs_before, RUNS.calm, {"streams-groups-are-loaded-whole"}),
    (
        writes_are_answered_before_the_replicas_have_them,
        RUNS.cut_off,
        {"live-members-stay", "member-epochs-grow", "one-owner-per-epoch"},
    ),
]


@pytest.mark.parametrize(
    ("mutant", "schedules", "invariants"), FOUND_BY, ids=lambda each: getattr(each, "__name__", "")
)
def test_defect_is_found_by_its_invariant(mutant, schedules, invariants, monkeypatch):
    mutant(monkeypatch)
    assert first_failure(schedules) in invariants


def test_sound_coordinator_passes_where_the_mutants_are_found():
    schedules = [*RUNS.calm[1:2], *RUNS.moved[2:3], *RUNS.killed[2:], *RUNS.cut_off[2:4]]
    assert first_failure(schedules) is None
