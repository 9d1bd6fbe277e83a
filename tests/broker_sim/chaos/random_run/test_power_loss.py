"""Random runs with power losses: what may be lost, what may not, and defects that they find."""

import os
from dataclasses import replace

import pytest

from broker_sim.chaos.random_run import FLUSHED, LYING, UNFLUSHED, Action, Schedule, draw_schedule, run_schedule
from broker_sim.chaos.random_run.checks.history import lost_text
from broker_sim.chaos.random_run.random_runs import RandomRuns
from broker_sim.chaos.search import run_seeds
from broker_sim.log.log_offsets import LogOffsets
from broker_sim.log.storage import files
from broker_sim.log.storage.files import FileStorage

from .outcomes import failed_invariant, shrunk

ALL = ("broker-1", "broker-2", "broker-3")
SEEDS = 6


def all_lose_power(disk, seed=1, *, at_ms=1_500):
    """Return a run in which all brokers lose their power at once."""
    return Schedule(
        seed,
        producers=("acks_all", "acks_1", "idempotent"),
        duration_ms=3_000,
        disk=disk,
        actions=(Action(at_ms, "lose_power", ALL, 500),),
    )


@pytest.mark.parametrize("sync_ms", [0, 3])
def test_nothing_acknowledged_is_lost_where_each_append_is_flushed(sync_ms):
    for seed in range(4):
        schedule = all_lose_power(FLUSHED, seed)
        summary = run_schedule(replace(schedule, sync_ms=sync_ms))
        assert summary.acknowledged > 20
        assert not summary.lost


@pytest.mark.parametrize("disk", [UNFLUSHED, LYING])
def test_run_tells_what_was_lost_where_nothing_was_flushed(disk):
    summary = run_schedule(all_lose_power(disk))
    assert summary.lost
    assert "partition 0: " in lost_text(summary.lost)
    assert f"{summary.lost[0].offset} ({summary.lost[0].value!r})" in lost_text(summary.lost)


def test_one_replica_that_loses_its_power_costs_nothing_that_all_have_acknowledged():
    for broker in ALL:
        schedule = Schedule(1, disk=UNFLUSHED, actions=(Action(1_500, "lose_power", (broker,), 4_000),))
        assert not run_schedule(schedule).lost


def test_killed_broker_loses_nothing():
    kills = tuple(Action(1_500, "kill", (broker,), 500) for broker in ALL)
    summary = run_schedule(Schedule(1, disk=UNFLUSHED, duration_ms=3_000, actions=kills))
    assert summary.acknowledged > 10
    assert not summary.lost


def test_same_seed_gives_the_same_run():
    schedule = draw_schedule(3, power_loss=True)
    assert run_schedule(schedule) == run_schedule(schedule)


def test_seed_does_the_same_with_power_losses_beside_it():
    for seed in range(50):
        plain, power = draw_schedule(seed), draw_schedule(seed, power_loss=True)
        assert plain.disk == "memory"
        assert any(action.kind == "lose_power" for action in power.actions)
        rest = [each for each in power.actions if each.kind != "lose_power"]
        moves = power.may_lose_records
        assert rest == [e for e in plain.actions if not (moves and e.kind.startswith("move_"))]
        assert not (moves and (power.transactional or power.group_members))


def test_flushes_of_drawn_power_losses_may_take_a_while_with_and_without_transactions():
    drawn = [draw_schedule(seed, power_loss=True) for seed in range(30)]
    slow = {bool(each.transactional) for each in drawn if each.disk == FLUSHED and each.sync_ms}
    assert slow == {True, False}


def test_drawn_power_losses_hit_one_some_and_all_brokers():
    shares = set()
    for seed in range(30):
        schedule = draw_schedule(seed, power_loss=True)
        for action in schedule.actions:
            if action.kind == "lose_power":
                count = len(action.on)
                shares.add("all" if count == schedule.brokers else "one" if count == 1 else "some")
    assert shares == {"one", "some", "all"}


def test_power_loss_is_shrunk_to_fewer_brokers_and_no_waits():
    schedule = Schedule(1, disk=FLUSHED, sync_ms=3, actions=(Action(1_000, "lose_power", ALL, 100),))

    def run(tried):
        return "found" if any("broker-2" in action.on for action in tried.actions) else None

    small = shrunk(schedule, "found", run).schedule
    assert small.actions == (Action(1_000, "lose_power", ("broker-2",), 100),)
    assert small.sync_ms == 0


# -- mutants -------------------------------------------------------------------------------------


def flush_is_only_noted(monkeypatch):
    """Records are acknowledged before they are on the disk."""

    def flush(self, base_offset, end_offset):
        self.recovery_point = max(self.recovery_point, end_offset)

    monkeypatch.setattr(FileStorage, "flush", flush)


def damaged_batches_are_recovered(monkeypatch):
    """The recovery takes every batch that looks whole, without its CRC."""
    original = files.scan_segment

    def scan_segment(*args, verify, **more):
        return original(*args, verify=False, **more)

    monkeypatch.setattr(files, "scan_segment", scan_segment)


def log_start_checkpoint_is_ahead_of_the_log(monkeypatch):
    """The checkpoint of the log start has an offset that the log does not have yet."""

    def checkpoint(self):
        self._storage.log_start_offset = self.log_end_offset + 1_000

    monkeypatch.setattr(LogOffsets, "checkpoint_log_start_offset", checkpoint)


FLUSHED_RUNS = [all_lose_power(FLUSHED, seed) for seed in range(8)]
UNFLUSHED_RUNS = [all_lose_power(UNFLUSHED, seed, at_ms=at_ms) for seed in range(10) for at_ms in (1_000, 2_000)]
FOUND_BY = [
    (flush_is_only_noted, FLUSHED_RUNS, {"flushed-records-stay"}),
    (damaged_batches_are_recovered, UNFLUSHED_RUNS, {"recovered-batches-are-whole"}),
    (log_start_checkpoint_is_ahead_of_the_log, FLUSHED_RUNS, {"flushed-records-stay", "high-watermark-within-isr"}),
]


@pytest.mark.parametrize(
    ("mutant", "schedules", "invariants"), FOUND_BY, ids=lambda each: getattr(each, "__name__", "")
)
def test_defect_is_found_by_its_invariant(mutant, schedules, invariants, monkeypatch):
    mutant(monkeypatch)
    found = next(filter(None, map(failed_invariant, schedules)), None)
    assert found in invariants


@pytest.mark.parametrize("schedule", [*FLUSHED_RUNS[:3], *UNFLUSHED_RUNS[:6]])
def test_sound_broker_passes_where_the_mutants_are_found(schedule):
    assert failed_invariant(schedule) is None


def test_drawn_seeds_pass_with_power_losses():
    first = int(os.environ.get("BROKER_SIM_SEED", "0"))
    runs = RandomRuns(duration_ms=3_000, power_loss=True)
    results = list(run_seeds(runs, range(first, first + SEEDS), jobs=1))
    assert [(each.seed, each.invariant, each.text) for each in results if each.invariant] == []
