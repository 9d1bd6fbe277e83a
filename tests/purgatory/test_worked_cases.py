"""The worked cases of the articles that describe timing wheels and purgatories, by number.

Times are milliseconds unless said, ranges half-open, the start is 0 unless said.
"""

from threading import RLock

import pytest
from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, InlineExecutor, SystemTimer


@pytest.fixture
def purgatory(timer):
    return DelayedOperationPurgatory("test", timer, purge_interval=3, reaper_enabled=False)


def test_case_1_each_level_ticks_by_the_turn_of_the_level_below(wheel, place):
    level_1 = wheel()
    place(level_1, 63_999_999)
    assert [(level.tick_ms, level.interval_ms) for level in level_1.levels()] == [
        (1, 20),
        (20, 400),
        (400, 8_000),
        (8_000, 160_000),
        (160_000, 3_200_000),
        (3_200_000, 64_000_000),
    ]


@pytest.mark.parametrize(
    ("delay_ms", "levels"), [(19, 1), (20, 2), (399, 2), (400, 3), (30_000, 4), (159_999, 4), (160_000, 5)]
)
def test_case_1_overflow_wheels_are_created_when_first_needed(timer, task, delay_ms, levels):
    assert timer.statistics().levels == 1
    timer.add(task(delay_ms))
    assert timer.statistics().levels == levels


def test_case_2_an_expired_bucket_is_used_and_enqueued_again(timer, task, placement, step, ran):
    first = task(2)
    timer.add(first)
    assert placement(first) == (1, 2)
    step(2)
    assert ran == [(2, 2)]
    tenth, twenty_first = task(8), task(19)
    timer.add(tenth)
    timer.add(twenty_first)
    assert placement(tenth) == (1, 10)
    assert placement(twenty_first) == (1, 1)
    step(10)
    step(20)
    assert ran == [(2, 2), (8, 10)]
    step(21)
    assert ran == [(2, 2), (8, 10), (19, 21)]


@pytest.mark.parametrize(
    ("expiration_ms", "place_and_start"),
    [(350, (2, 17, 340)), (450, (3, 1, 400)), (446, (3, 1, 400)), (455, (3, 1, 400)), (473, (3, 1, 400))],
)
def test_case_3_longer_delays_go_to_coarser_levels(wheel, place, expiration_ms, place_and_start):
    assert place(wheel(), expiration_ms) == place_and_start


def test_case_4_a_task_sinks_through_the_levels_and_runs_once(timer, task, placement, step, ran):
    tasks = {delay_ms: task(delay_ms) for delay_ms in (446, 450, 455, 473)}
    for each in tasks.values():
        timer.add(each)
    step(399)
    assert placement(tasks[450]) == (3, 1)
    step(400)
    assert {delay: placement(each) for delay, each in tasks.items()} == {
        446: (2, 2),
        450: (2, 2),
        455: (2, 2),
        473: (2, 3),
    }
    step(439)
    assert placement(tasks[450]) == (2, 2)
    step(440)
    assert placement(tasks[450]) == (1, 10)
    step(449)
    assert ran == [(446, 449)]
    step(450)
    assert ran == [(446, 449), (450, 450)]
    for now_ms in range(451, 500):
        step(now_ms)
    assert ran == [(446, 449), (450, 450), (455, 455), (473, 473)]


def test_case_5_a_wheel_starts_at_its_tick_rounded_down(wheel, place):
    assert wheel(tick_ms=20, start_ms=123).current_time_ms == 120
    level_1 = wheel(start_ms=123)
    assert place(level_1, 237) == (2, 11, 220)
    assert level_1.levels()[1].current_time_ms == 120


@pytest.mark.parametrize(
    ("seconds", "place_and_start"),
    [
        *((second, (1, 3, 30_000)) for second in (35, 36, 38)),
        *((second, (1, 1, 10_000)) for second in (12, 18)),
        *((second, (1, 6, 60_000)) for second in (62, 65, 69)),
        *((second, (1, 5, 50_000)) for second in (53, 54)),
        (100, (2, 1, 80_000)),
        (700, (3, 1, 640_000)),
    ],
)
def test_case_6_tasks_go_into_buckets_of_ten_seconds(wheel, place, seconds, place_and_start):
    assert place(wheel(tick_ms=10_000, wheel_size=8), seconds * 1_000) == place_and_start


def test_case_6_a_task_may_skip_a_level_on_its_way_down(clock, ran, task):
    timer = SystemTimer("test", clock, InlineExecutor(), tick_ms=10_000, wheel_size=8)
    timer.add(task(700_000))
    clock.advance_to(639_999)
    assert timer.advance_clock(0) is False
    clock.advance_to(640_000)
    assert timer.advance_clock(0) is True
    assert [placed[1:] for placed in timer.placements()] == [(1, 6)]
    clock.advance_to(699_999)
    assert timer.advance_clock(0) is False
    clock.advance_to(700_000)
    assert timer.advance_clock(0) is True
    assert ran == [(700_000, 700_000)]


def test_case_7_the_ranges_of_the_buckets_move_with_the_clock(wheel, place):
    start = 27

    def ranges(now):
        """Place a task at each time in reach; the first and last time of each bucket, by level."""
        level_1 = wheel(wheel_size=3, start_ms=start)
        place(level_1, start + 26)  # so that all three levels exist before the clock moves
        level_1.advance_clock(start + now)
        covered = {}
        for offset in range(27):
            found = place(level_1, start + offset)
            if found is not None:
                covered.setdefault((found[0], found[2] - start), []).append(offset)
        return {bucket: (times[0], times[-1]) for bucket, times in covered.items()}

    # Level 1 holds no task for the current tick, and the buckets of level 2 and 3 whose range
    # is covered by the level below are not among those that got one.
    level_3 = {(3, 9): (9, 17), (3, 18): (18, 26)}
    assert ranges(0) == {(1, 1): (1, 1), (1, 2): (2, 2), (2, 3): (3, 5), (2, 6): (6, 8), **level_3}
    # At c+1 level 1 gains [c+3]; level 2 keeps its bucket for the rest of [c+3, c+5].
    assert ranges(1) == {(1, 2): (2, 2), (1, 3): (3, 3), (2, 3): (4, 5), (2, 6): (6, 8), **level_3}
    assert ranges(2) == {(1, 3): (3, 3), (1, 4): (4, 4), (2, 3): (5, 5), (2, 6): (6, 8), **level_3}
    # At c+3 level 1 gains [c+5], and level 2 moves and gains [c+9, c+11]; level 3 does not move.
    assert ranges(3) == {
        (1, 4): (4, 4),
        (1, 5): (5, 5),
        (2, 6): (6, 8),
        (2, 9): (9, 11),
        (3, 9): (12, 17),
        (3, 18): (18, 26),
    }


def test_case_7_coarse_levels_move_only_by_their_own_tick(wheel, place):
    level_1 = wheel(wheel_size=3, start_ms=27)
    place(level_1, 27 + 26)
    moved = []
    for now in range(10):
        level_1.advance_clock(27 + now)
        moved.append(tuple(level.current_time_ms - 27 for level in level_1.levels()))
    assert moved == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
        (3, 3, 0),
        (4, 3, 0),
        (5, 3, 0),
        (6, 6, 0),
        (7, 6, 0),
        (8, 6, 0),
        (9, 9, 9),
    ]


def test_case_8_timers_of_one_coarse_bucket_run_at_their_own_deadlines(timer, task, placement, step, ran):
    tasks = [task(8, "a"), task(8, "b"), task(25), task(30), task(35)]
    for each in tasks:
        timer.add(each)
    assert [placement(each) for each in tasks] == [(1, 8), (1, 8), (2, 1), (2, 1), (2, 1)]
    step(7)
    assert ran == []
    step(8)
    assert ran == [("a", 8), ("b", 8)]
    step(20)
    assert [placement(each) for each in tasks[2:]] == [(1, 5), (1, 10), (1, 15)]
    assert len(ran) == 2
    for now_ms in range(21, 40):
        step(now_ms)
    assert ran[2:] == [(25, 25), (30, 30), (35, 35)]


def test_case_9_the_clock_jumps_from_bucket_to_bucket_without_ticks(clock, task, ran):
    timer = SystemTimer("test", clock, InlineExecutor(), tick_ms=20, wheel_size=50)
    timer.add(task(200))
    timer.add(task(840))
    polled = []
    for now_ms in range(1_000):
        clock.advance_to(now_ms)
        if timer.advance_clock(0):
            polled.append(now_ms)
    assert polled == [200, 840]
    assert ran == [(200, 200), (840, 840)]


def test_case_10_a_cancelled_task_leaves_at_once_and_its_bucket_later(timer, task, placement, clock, ran):
    cancelled = task(7)
    timer.add(cancelled)
    assert timer.size() == 1
    cancelled.cancel()
    assert timer.size() == 0
    assert placement(cancelled) is None
    clock.advance_to(6)
    assert timer.advance_clock(0) is False
    clock.advance_to(7)
    assert timer.advance_clock(0) is True  # the empty bucket comes up, and that is all
    assert ran == []
    assert timer.advance_clock(0) is False


@pytest.mark.parametrize("completed_by", ["the second try", "another thread"])
def test_case_11_an_operation_completed_while_parked_leaves_all_lists(purgatory, operation, completed_by):
    """All keys are watched in one step. What comes meanwhile is found by the second try.

    interleavings/test_operations.py has the event come from another thread at every moment.
    """

    class Operation(operation):
        def try_complete(self):
            if self.tries == 1:
                assert purgatory.watched() == 3
                self.completable = True
                if completed_by == "another thread":
                    self.force_complete()
            return super().try_complete()

    op = Operation()
    parked = purgatory.try_complete_else_watch(op, ("P1", "P2", "P3"))
    assert parked is (completed_by == "the second try")
    assert op.completions == 1
    assert purgatory.watched() == 0
    assert purgatory.statistics().watched_keys == 0
    assert purgatory.num_delayed() == 0


def test_case_12_completed_operations_stay_under_other_keys_until_the_purge(purgatory, operation):
    fetches = {number: operation() for number in range(1, 6)}
    for fetch in fetches.values():
        purgatory.try_complete_else_watch(fetch, ("P1", "P2"))
    assert purgatory.watched() == 10
    fetches[2].completable = fetches[4].completable = True
    assert purgatory.check_and_complete("P1") == 2
    assert purgatory.watched() == 3 + 5
    purgatory.advance_clock(0)
    assert purgatory.watched() == 3 + 5  # two completed ones are not worth a purge
    fetches[1].completable = fetches[3].completable = True
    assert purgatory.check_and_complete("P1") == 2
    assert purgatory.watched() == 1 + 5
    purgatory.advance_clock(0)
    assert purgatory.watched() == 1 + 1
    assert purgatory.num_delayed() == 1


class _Group:
    """A consumer group that waits for its members to join again."""

    def __init__(self, members):
        self.lock = RLock()
        self.members = set(members)
        self.joined = []
        self.answered = []


class _DelayedJoin(DelayedOperation):
    """Completed when every member has joined; whoever has not by the timeout is dropped."""

    def __init__(self, group, rebalance_timeout_ms):
        super().__init__(rebalance_timeout_ms, group.lock)
        self._group = group

    def try_complete(self):
        return self._group.members == set(self._group.joined) and self.force_complete()

    def on_complete(self):
        group = self._group
        with group.lock:
            group.members = set(group.joined)
            group.answered += group.joined

    def on_expiration(self):
        pass


def test_case_13_the_tenth_join_completes_all_ten(purgatory):
    group = _Group(range(10))
    assert purgatory.try_complete_else_watch(_DelayedJoin(group, 60_000), ("group",)) is False
    for member in range(9):
        group.joined.append(member)
        assert purgatory.check_and_complete("group") == 0
        assert group.answered == []
    group.joined.append(9)
    assert purgatory.check_and_complete("group") == 1
    assert group.answered == list(range(10))
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)


def test_case_13_at_the_timeout_missing_members_are_dropped(purgatory, clock):
    group = _Group(range(10))
    purgatory.try_complete_else_watch(_DelayedJoin(group, 60_000), ("group",))
    group.joined += [0, 1, 2, 3, 4, 5, 6, 8]
    purgatory.check_and_complete("group")
    clock.advance_to(59_999)
    purgatory.advance_clock(0)
    assert group.answered == []
    clock.advance_to(60_000)
    purgatory.advance_clock(0)
    assert group.answered == [0, 1, 2, 3, 4, 5, 6, 8]
    assert group.members == {0, 1, 2, 3, 4, 5, 6, 8}


def test_case_14_expired_operations_are_purged_once_there_are_enough(purgatory, clock, operation):
    def figures():
        figures = purgatory.statistics()
        return figures.estimated_total_operations, figures.num_delayed, figures.watched

    for delay_ms in (10, 10, 10, 20, 1_000):
        purgatory.try_complete_else_watch(operation(delay_ms), ("a",))
    assert figures() == (5, 5, 5)
    clock.advance_to(10)
    purgatory.advance_clock(0)
    assert figures() == (5, 2, 5)  # three more than are delayed: the interval, not above it
    clock.advance_to(20)
    purgatory.advance_clock(0)
    assert figures() == (1, 1, 1)
    assert purgatory.statistics().purges == 1
