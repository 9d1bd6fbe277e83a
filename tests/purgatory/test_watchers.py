"""Watch lists: what leaves them, and when."""

import pytest

from purgatory import WatcherList


@pytest.fixture
def shard():
    return WatcherList()


def test_completed_operations_leave_the_list_and_the_empty_list_goes(shard, operation):
    first, second = operation(), operation()
    shard.watch("a", first)
    shard.watch("a", second)
    assert shard.counts() == (1, 2)
    first.completable = True
    assert shard.check_and_complete("a", None) == 1
    assert shard.counts() == (1, 1)
    second.completable = True
    assert shard.check_and_complete("a", None) == 1
    assert shard.counts() == (0, 0)


def test_operations_completed_elsewhere_leave_uncounted_and_untried(shard, operation):
    op = operation()
    shard.watch("a", op)
    op.force_complete()
    assert shard.check_and_complete("a", None) == 0
    assert op.tries == 0
    assert shard.counts() == (0, 0)


def test_operations_are_tried_in_the_order_in_which_they_came(shard, operation):
    tried = []
    ops = [operation() for _ in range(5)]
    for op in ops:
        shard.watch("a", op)
    shard.check_and_complete("a", lambda op: tried.append(op) or False)
    assert tried == ops


def test_purge_drops_completed_operations_and_empty_lists(shard, operation):
    done, waiting = operation(), operation()
    for key in ("a", "b"):
        shard.watch(key, done)
    shard.watch("b", waiting)
    assert shard.purge_completed() == 0
    done.force_complete()
    assert shard.purge_completed() == 2
    assert shard.counts() == (1, 1)


def test_cancel_drops_the_list_and_returns_what_is_not_completed(shard, operation):
    done, waiting = operation(), operation()
    shard.watch("a", done)
    shard.watch("a", waiting)
    done.force_complete()
    assert shard.cancel("a") == [waiting]
    assert shard.counts() == (0, 0)
    assert shard.cancel("a") == []


def test_an_operation_that_is_added_during_the_walk_stays(shard, operation):
    first, second = operation(), operation()
    shard.watch("a", first)

    def attempt(op):
        shard.watch("a", second)
        return op.force_complete()

    assert shard.check_and_complete("a", attempt) == 1
    assert shard.counts() == (1, 1)
    second.completable = True
    assert shard.check_and_complete("a", None) == 1


def test_a_list_cancelled_and_begun_anew_during_the_walk_is_left_alone(shard, operation):
    first, second = operation(), operation()
    shard.watch("a", first)

    def attempt(op):
        shard.cancel("a")
        shard.watch("a", second)
        return op.force_complete()

    assert shard.check_and_complete("a", attempt) == 1
    second.completable = True
    assert shard.check_and_complete("a", None) == 1
