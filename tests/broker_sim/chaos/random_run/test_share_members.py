"""A share group with a dead-letter queue in random runs: nothing that is rejected is lost."""

import pytest

from broker_sim.chaos.faults.action import Action
from broker_sim.chaos.random_run import RunFailedError, Schedule, draw_schedule, run_schedule
from broker_sim.cluster.virtual.invariants import left_out
from broker_sim.share.dead_letters.dead_letter_queue import DeadLetterQueue

CALM = Schedule(3, partitions=2, share_members=2, duration_ms=3_000)
KILLS = Schedule(
    5,
    partitions=3,
    share_members=3,
    duration_ms=6_000,
    actions=tuple(
        Action(at_ms, "kill", (f"broker-{1 + at_ms // 1_000 % 3}",), 900) for at_ms in range(1_000, 5_000, 1_000)
    ),
)


@pytest.mark.parametrize("schedule", [CALM, KILLS], ids=["calm", "kills"])
def test_records_are_rejected_and_have_letters(schedule):
    assert run_schedule(schedule).rejected > 10


def test_some_drawn_schedules_have_share_members_and_producers():
    drawn = [draw_schedule(seed) for seed in range(100)]
    assert {each.share_members for each in drawn} == {0, 1, 2, 3}
    assert all(each.producers and not each.unclean_elections for each in drawn if each.share_members)


def test_letters_that_are_not_tried_again_are_missed(monkeypatch):
    monkeypatch.setattr(DeadLetterQueue, "_try_later", lambda _, pending, _attempts: pending.on_done())
    with pytest.raises(RunFailedError) as failed:
        run_schedule(KILLS)
    assert failed.value.invariant == "rejected-records-have-letters"
    with left_out(failed.value.invariant):
        run_schedule(KILLS)
