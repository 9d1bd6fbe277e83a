"""Watch lists: what leaves them, and when."""

import pytest
from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory._watchers import KEYS_PER_PURGE_STEP, WatcherList


@pytest.fixture
def lists():
    return WatcherList(TaskOwner())


def test_completed_operations_leave_the_list_and_the_empty_list_goes(lists, operation):
    first, second = operation(), operation()
    lists.watch(first, ["a"])
    lists.watch(second, ["a"])
    assert lists.counts() == (1, 2)
    first.completable = True
    assert lists.check_and_complete("a", None) == 1
    assert lists.counts() == (1, 1)
    second.completable = True
    assert lists.check_and_complete("a", None) == 1
    assert lists.counts() == (0, 0)


def test_operations_completed_elsewhere_leave_uncounted_and_untried(lists, operation):
    op = operation()
    lists.watch(op, ["a"])
    op.force_complete()
    assert lists.check_and_complete("a", None) == 0
    assert op.tries == 0
    assert lists.counts() == (0, 0)


def test_operations_are_tried_in_the_order_in_which_they_came(lists, operation):
    tried = []
    ops = [operation() for _ in range(5)]
    for op in ops:
        lists.watch(op, ["a"])
    lists.check_and_complete("a", lambda op: tried.append(op) or False)
    assert tried == ops


def test_purge_drops_completed_operations_and_empty_lists(lists, operation):
    done, waiting = operation(), operation()
    lists.watch(done, ["a", "b"])
    lists.watch(waiting, ["b"])
    assert lists.purge_completed() == 0
    done.force_complete()
    assert lists.purge_completed() == 2
    assert lists.counts() == (1, 1)


@pytest.mark.parametrize("keys", [KEYS_PER_PURGE_STEP - 1, KEYS_PER_PURGE_STEP + 1])
def test_purge_looks_through_all_keys_in_its_steps(lists, operation, keys):
    done = operation()
    lists.watch(done, range(keys))
    done.force_complete()
    assert lists.purge_completed() == keys
    assert lists.counts() == (0, 0)


def test_cancel_drops_the_list_and_returns_what_is_not_completed(lists, operation):
    done, waiting = operation(), operation()
    lists.watch(done, ["a"])
    lists.watch(waiting, ["a"])
    done.force_complete()
    assert lists.cancel("a") == [waiting]
    assert lists.counts() == (0, 0)
    assert lists.cancel("a") == []


def test_unwatch_takes_out_one_operation_and_empty_lists(lists, operation):
    gone, waiting = operation(), operation()
    lists.watch(gone, ["a", "b"])
    lists.watch(waiting, ["b"])
    lists.unwatch(gone, ["a", "b", "unknown"])
    assert lists.watched_by_key() == [("b", (waiting,), 0)]
    assert lists.counts() == (1, 1)
    lists.unwatch(gone, ["a", "b"])
    assert lists.counts() == (1, 1)


def test_an_operation_that_is_added_during_the_walk_stays_and_is_not_tried(lists, operation):
    first, second = operation(), operation()
    lists.watch(first, ["a"])

    def attempt(op):
        lists.watch(second, ["a"])
        return op.force_complete()

    assert lists.check_and_complete("a", attempt) == 1
    assert second.tries == 0
    assert lists.counts() == (1, 1)
    second.completable = True
    assert lists.check_and_complete("a", None) == 1


def test_a_list_cancelled_and_begun_anew_during_the_walk_is_left_alone(lists, operation):
    first, second = operation(), operation()
    lists.watch(first, ["a"])

    def attempt(op):
        lists.cancel("a")
        lists.watch(second, ["a"])
        return op.force_complete()

    assert lists.check_and_complete("a", attempt) == 1
    second.completable = True
    assert lists.check_and_complete("a", None) == 1
