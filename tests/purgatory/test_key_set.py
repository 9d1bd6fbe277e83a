"""Key sets: what waits under them is found, tried and counted as in lists, at a cost of its own."""

import pytest
from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock


class _Key:
    """A key that counts how often it is looked for."""

    hashed = 0

    def __hash__(self):
        _Key.hashed += 1
        return id(self)

    def __eq__(self, other):
        return self is other


class _Watched(DelayedOperation):
    """Tells of its tries, and is complete at one of them."""

    def __init__(self, on_try, complete_at=0):
        super().__init__(100_000)
        self.on_try = on_try
        self.complete_at = complete_at
        self.tries = 0

    def try_complete(self):
        self.tries += 1
        self.on_try(self)
        return self.tries == self.complete_at and self.force_complete()

    def on_complete(self):
        pass

    def on_expiration(self):
        pass


@pytest.fixture
def purgatory():
    timer = SystemTimer("test", VirtualClock(), InlineExecutor())
    return DelayedOperationPurgatory("test", timer, reaper_enabled=False, purge_interval=3)


@pytest.fixture
def keys(purgatory):
    made = purgatory.key_set(few_keys=0)
    for key in ("a", "b", "c"):
        made.add(key)
    return made


def test_parking_again_under_the_same_keys_hashes_none_of_them(purgatory, operation):
    keys = purgatory.key_set(few_keys=0)
    for _ in range(50):
        keys.add(_Key())
    for number in range(10):
        if number == 1:
            _Key.hashed = 0
        op = operation()
        purgatory.try_complete_else_watch(op, keys)
        op.force_complete()
    purgatory.advance_clock(0)
    assert _Key.hashed == 0


def test_completed_operations_count_under_each_key_until_they_are_dropped_there(purgatory, keys, operation):
    for _ in range(2):
        op = operation()
        purgatory.try_complete_else_watch(op, keys)
        op.force_complete()
    purgatory.try_complete_else_watch(operation(), keys)
    assert purgatory.watched() == 9
    assert purgatory.check_and_complete("b") == 0
    assert purgatory.watched() == 7
    assert purgatory.watched_by_key()[0][2] == 2
    for _ in range(2):
        op = operation()
        purgatory.try_complete_else_watch(op, ["x"])
        op.force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched() == 3, "the purge drops the completed ones"


def test_operations_are_tried_in_the_order_in_which_they_came(purgatory, keys):
    tried = []

    def parked(under):
        op = _Watched(tried.append)
        purgatory.try_complete_else_watch(op, under)
        return op

    others = purgatory.key_set(few_keys=0)
    others.add("b")
    came = [parked(["b"]), parked(keys), parked(["b"]), parked(others), parked(["b"])]
    tried.clear()
    purgatory.check_and_complete("b")
    assert tried == came


def test_next_operation_leaves_a_waiting_one_where_it_is(purgatory, keys, operation):
    first, second = operation(), operation()
    purgatory.try_complete_else_watch(first, keys)
    purgatory.try_complete_else_watch(second, keys)
    assert purgatory.watched() == 6
    first.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched() == 5
    assert dict(purgatory.watch_lists()) == {"a": (second,), "b": (first, second), "c": (first, second)}


def test_keys_may_change_while_an_operation_waits(purgatory, keys, operation):
    op = operation()
    purgatory.try_complete_else_watch(op, keys)
    keys.discard("a")
    keys.add("d")
    assert [key for key, _ in purgatory.watch_lists()] == ["a", "b", "c"]
    op.completable = True
    assert purgatory.check_and_complete("d") == 0
    assert purgatory.check_and_complete("a") == 1


def test_cleared_set_leaves_nothing_behind_after_the_purge(purgatory, keys, operation):
    for _ in range(5):
        op = operation()
        purgatory.try_complete_else_watch(op, keys)
        op.force_complete()
    keys.clear()
    assert purgatory.watched() == 15
    purgatory.advance_clock(0)
    assert purgatory.watched() == 0
    assert not purgatory.is_watched("a")


def test_operation_that_completes_while_it_is_parked_is_watched_under_no_key(purgatory, keys):
    assert purgatory.try_complete_else_watch(_Watched(lambda _: None, complete_at=2), keys)
    assert purgatory.watched() == 0


def test_set_without_keys_is_refused(purgatory, operation):
    with pytest.raises(ValueError, match="has no keys"):
        purgatory.try_complete_else_watch(operation(), purgatory.key_set(few_keys=0))


def test_shutdown_drops_what_waits_under_sets(purgatory, keys, operation):
    purgatory.try_complete_else_watch(operation(), keys)
    purgatory.shutdown()
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)
    assert purgatory.watch_lists() == []


def test_few_keys_are_watched_as_a_list_of_keys_is(purgatory, operation):
    keys = purgatory.key_set(few_keys=2)
    keys.add("a")
    keys.add("b")
    first, second = operation(), operation()
    purgatory.try_complete_else_watch(first, keys)
    assert not keys.in_use
    keys.add("c")
    purgatory.try_complete_else_watch(second, keys)
    assert keys.in_use
    assert dict(purgatory.watch_lists()) == {"a": (first, second), "b": (first, second), "c": (second,)}
