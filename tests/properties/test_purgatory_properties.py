"""The purgatory against dictionaries: watch lists, timer, purge, and one end per operation."""

from typing import ClassVar

from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

PURGE_INTERVAL = 4
KEYS = ("a", "b", 0, 2**61 - 1, ("t", 1))  # the two numbers have the same hash
KEY = st.sampled_from(KEYS)


class _Operation(DelayedOperation):
    tried: ClassVar[list] = []

    def __init__(self, delay_ms):
        super().__init__(delay_ms)
        self.completable = False
        self.completions = 0
        self.expirations = 0

    def try_complete(self):
        self.tried.append(self)
        return self.completable and self.force_complete()

    def on_complete(self):
        self.completions += 1

    def on_expiration(self):
        self.expirations += 1


class _Ends:
    """An observer that remembers how each operation ended."""

    def __init__(self):
        self.tried_ids = []
        self.parked_ids = []
        self.ends = {}

    def tried(self, operation, keys):
        self.tried_ids.append(operation.operation_id)

    def parked(self, operation, keys):
        assert operation.operation_id not in self.ends
        self.parked_ids.append(operation.operation_id)

    def _end(self, operation, how):
        assert operation.operation_id in self.tried_ids
        assert operation.operation_id not in self.ends
        self.ends[operation.operation_id] = how

    def completed(self, operation, by):
        self._end(operation, by)

    def expired(self, operation, lateness_ms):
        self._end(operation, lateness_ms)

    def cancelled(self, operation):
        self._end(operation, "cancelled")


class PurgatoryAgainstDictionaries(RuleBasedStateMachine):
    """The model: lists by key, deadlines by operation, and the estimate that triggers a purge."""

    def __init__(self):
        super().__init__()
        self.clock = VirtualClock(1_000)
        self.observer = _Ends()
        self.purgatory = DelayedOperationPurgatory(
            "model",
            SystemTimer("model", self.clock, InlineExecutor()),
            purge_interval=PURGE_INTERVAL,
            reaper_enabled=False,
            observer=self.observer,
        )
        self.key_sets = [self.purgatory.key_set(few_keys) for few_keys in (0, 2)]
        self.operations = []
        self.lists = {}
        self.keys = {}
        self.deadlines_ms = {}
        self.ends = {}
        self.estimate = 0

    def _end(self, operation, how):
        self.deadlines_ms.pop(operation, None)
        self.ends.setdefault(operation.operation_id, how)

    @rule(
        keys=st.lists(KEY, min_size=1, max_size=3, unique=True),
        delay_ms=st.integers(0, 1_000),
        completable=st.sampled_from([False, False, False, True]),
    )
    def park(self, keys, delay_ms, completable):
        operation = _Operation(delay_ms)
        operation.completable = completable
        self.operations.append(operation)
        assert self.purgatory.try_complete_else_watch(operation, keys) is completable
        if completable:
            self._end(operation, "immediate")
            return
        self._parked(operation, keys, delay_ms)

    def _parked(self, operation, keys, delay_ms):
        for key in keys:
            self.lists.setdefault(key, []).append(operation)
        self.keys[operation] = keys
        self.estimate += 1
        if operation.is_completed():  # the timer ran it at once
            assert delay_ms == 0
            self._end(operation, 0)
        else:
            self.deadlines_ms[operation] = self.clock.now_ms() + delay_ms

    @precondition(lambda self: any(self.key_sets))
    @rule(data=st.data(), delay_ms=st.integers(0, 1_000))
    def park_under_a_key_set(self, data, delay_ms):
        keys = data.draw(st.sampled_from([each for each in self.key_sets if each]), label="set")
        operation = _Operation(delay_ms)
        self.operations.append(operation)
        self.purgatory.try_complete_else_watch(operation, keys)
        self._parked(operation, list(keys), delay_ms)

    @rule(number=st.integers(0, 1), key=KEY)
    def change_a_key_set(self, number, key):
        keys = self.key_sets[number]
        if key in keys:
            keys.discard(key)
        else:
            keys.add(key)

    @precondition(lambda self: self.operations)
    @rule(data=st.data())
    def become_completable(self, data):
        data.draw(st.sampled_from(self.operations), label="operation").completable = True

    @rule(key=KEY)
    def check_and_complete(self, key):
        watched = self.lists.pop(key, [])
        uncompleted = [each for each in watched if not each.completed]
        now_completable = [each for each in watched if each.completable and not each.completed]
        _Operation.tried = []
        assert self.purgatory.check_and_complete(key) == len(now_completable)
        assert _Operation.tried == uncompleted, "each once, in the order in which they came"
        for operation in now_completable:
            self._end(operation, f"key:{key}")
        remaining = [operation for operation in watched if not operation.completed]
        if remaining:
            self.lists[key] = remaining

    @precondition(lambda self: self.operations)
    @rule(data=st.data())
    def force_complete(self, data):
        operation = data.draw(st.sampled_from(self.operations), label="operation")
        uncompleted = operation.completions == 0
        assert operation.force_complete() is uncompleted
        assert operation.completions == 1
        self._end(operation, "other")

    @rule(key=KEY)
    def cancel_for_key(self, key):
        expected = [each for each in self.lists.pop(key, []) if not each.completed]
        assert self.purgatory.cancel_for_key(key) == expected
        for operation in expected:
            self._end(operation, "cancelled")

    @rule(jump_ms=st.one_of(st.integers(0, 5), st.integers(0, 1_500)))
    def advance(self, jump_ms):
        self.clock.advance(jump_ms)
        self.purgatory.advance_clock(0)
        now_ms = self.clock.now_ms()
        for operation, deadline_ms in list(self.deadlines_ms.items()):
            if deadline_ms <= now_ms:
                assert (operation.completions, operation.expirations) == (1, 1)
                self._end(operation, now_ms - deadline_ms)
        if self.estimate - len(self.deadlines_ms) > PURGE_INTERVAL:
            self.estimate = len(self.deadlines_ms)
            kept = {
                key: [operation for operation in watched if not operation.completed]
                for key, watched in self.lists.items()
            }
            self.lists = {key: watched for key, watched in kept.items() if watched}

    @invariant()
    def figures_agree(self):
        statistics = self.purgatory.statistics()
        assert statistics.num_delayed == self.purgatory.num_delayed() == len(self.deadlines_ms)
        assert statistics.watched == sum(len(watched) for watched in self.lists.values())
        assert statistics.watched == self.purgatory.watched()
        assert statistics.watched_keys == len(self.lists)
        by_key = self.purgatory.watched_by_key()
        assert {key: len(found) + forgotten for key, found, forgotten in by_key} == {
            key: len(watched) for key, watched in self.lists.items()
        }
        assert statistics.estimated_total_operations == self.estimate

    @invariant()
    def parked_lists_what_waits_in_the_timer(self):
        now_ms = self.clock.now_ms()
        expected = sorted(
            (max(deadline_ms - now_ms, 0), operation.operation_id, set(self.keys[operation]))
            for operation, deadline_ms in self.deadlines_ms.items()
        )
        shown = [(each.time_left_ms, each.operation_id, set(each.keys)) for each in self.purgatory.parked()]
        assert shown == expected

    @invariant()
    def each_operation_completes_at_most_once_and_ends_as_the_model_says(self):
        assert all(operation.completions <= 1 for operation in self.operations)
        assert self.observer.ends == self.ends

    def teardown(self):
        waiting = {each.operation_id for each in self.operations} - set(self.ends)
        self.purgatory.shutdown()
        assert {number for number, how in self.observer.ends.items() if number in waiting} == waiting
        assert set(self.observer.ends) == set(self.observer.tried_ids)
        assert (self.purgatory.watched(), self.purgatory.num_delayed()) == (0, 0)


PurgatoryAgainstDictionaries.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestPurgatoryAgainstDictionaries = PurgatoryAgainstDictionaries.TestCase
