"""Real threads against one purgatory: each operation ends once, nothing is lost, all is freed."""

import random
import threading

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, PendingOperation, SystemTimer

pytestmark = pytest.mark.threads

THREADS = 6
PATIENCE_S = 60


@pytest.fixture
def real_purgatory():
    """Make purgatories with a real timer and reaper, which end with the test."""
    made = []

    def make(name="race", **options):
        made.append(DelayedOperationPurgatory(name, SystemTimer(name), **options))
        return made[-1]

    yield make
    for purgatory in made:
        purgatory.shutdown()


class _Ends:
    """An observer that counts how often each operation ended, and can be waited for."""

    def __init__(self):
        self._condition = threading.Condition()
        self.open = 0
        self.ends = {}

    def tried(self, operation, keys):
        with self._condition:
            self.open += 1

    def parked(self, operation, keys):
        pass

    def _end(self, operation, how):
        with self._condition:
            self.ends.setdefault(operation, []).append(how)
            self.open -= 1
            self._condition.notify_all()

    def completed(self, operation, by):
        self._end(operation, by.partition(":")[0])

    def expired(self, operation, lateness_ms):
        assert lateness_ms >= 0
        self._end(operation, "expired")

    def cancelled(self, operation):
        self._end(operation, "cancelled")

    def wait_until_all_ended(self):
        with self._condition:
            return self._condition.wait_for(lambda: self.open <= 0, PATIENCE_S)


@pytest.mark.parametrize("observed", [True, False])
def test_every_operation_completes_exactly_once_in_any_race(together, real_purgatory, operation, observed):
    """Threads park under shared keys while others announce, force and let expire."""
    observer = _Ends()
    purgatory = real_purgatory(purge_interval=50, observer=observer if observed else None)
    per_thread = 400
    done = threading.Semaphore(0)
    completions = []

    class Operation(operation):
        def on_complete(self):
            completions.append(self)
            done.release()

    operations = [[] for _ in range(THREADS)]

    def work(index):
        chance = random.Random(index)
        mine = operations[index]
        for _ in range(per_thread):
            op = Operation(chance.choice((0, 1, 3, 10, 40)))
            mine.append(op)
            purgatory.try_complete_else_watch(op, chance.sample(range(8), chance.randint(1, 3)))
            other = chance.choice(operations[chance.randrange(THREADS)] or mine)
            if chance.random() < 0.6:
                other.completable = True
            if chance.random() < 0.2:
                other.force_complete()
            purgatory.check_and_complete(chance.randrange(8))
            if chance.random() < 0.05:
                purgatory.parked()
                purgatory.statistics()

    together(*(lambda index=index: work(index) for index in range(THREADS)))
    total = THREADS * per_thread
    for _ in range(total):
        assert done.acquire(timeout=PATIENCE_S), "an operation was lost"
    if observed:
        assert observer.wait_until_all_ended()
        assert observer.open == 0
        assert all(len(ends) == 1 for ends in observer.ends.values())
        assert {"key", "other", "expired"} <= {ends[0] for ends in observer.ends.values()}
    for key in range(8):
        purgatory.check_and_complete(key)
    assert (purgatory.num_delayed(), purgatory.watched()) == (0, 0)
    assert purgatory.statistics().watched_keys == 0
    purgatory.shutdown()
    assert sorted(map(id, completions)) == sorted(id(op) for mine in operations for op in mine)


def test_racing_cancel_complete_and_expire_end_each_operation_once(together, real_purgatory, operation):
    observer = _Ends()
    purgatory = real_purgatory(observer=observer)
    operations = []

    def park():
        chance = random.Random(1)
        for number in range(1_500):
            op = operation(chance.randint(1, 20))
            operations.append(op)
            purgatory.try_complete_else_watch(op, (number % 5, number % 3 + 10))

    def complete():
        chance = random.Random(2)
        for _ in range(3_000):
            if operations:
                chance.choice(operations).completable = True
            purgatory.check_and_complete(chance.randrange(5))

    def cancel():
        chance = random.Random(3)
        for _ in range(1_000):
            purgatory.cancel_for_key(chance.randrange(10, 13))

    together(park, complete, cancel)
    assert observer.wait_until_all_ended()
    assert len(observer.ends) == 1_500
    assert all(len(ends) == 1 for ends in observer.ends.values())
    assert all(op.completions <= 1 for op in operations)
    assert purgatory.num_delayed() == 0
    purgatory.shutdown()
    assert purgatory.watched() == 0


def test_no_event_is_lost_between_watching_and_trying_again(together, real_purgatory, operation):
    """The condition is met and announced once, at any moment of the operation's parking."""
    purgatory = real_purgatory(reaper_enabled=False, purge_interval=10**9)
    for _ in range(600):
        op = operation(3_600_000)

        def announce(op=op):
            op.completable = True
            purgatory.check_and_complete("a")

        together(lambda op=op: purgatory.try_complete_else_watch(op, ("b", "a")), announce)
        assert op.completions == 1
        assert purgatory.num_delayed() == 0


def test_operations_completable_at_the_last_of_many_attempts_complete(together, real_purgatory, operation):
    """Like Kafka's test of many attempts under a contended lock: the last attempt may not be lost."""
    purgatory = real_purgatory()
    attempts = 5
    operations = [operation(3_600_000) for _ in range(60)]
    left = [attempts * THREADS] * len(operations)
    lock = threading.Lock()
    for number, op in enumerate(operations):
        purgatory.try_complete_else_watch(op, (number,))

    def attempt(seed):
        numbers = list(range(len(operations))) * attempts
        random.Random(seed).shuffle(numbers)
        for number in numbers:
            with lock:
                left[number] -= 1
                if left[number] == 0:
                    operations[number].completable = True
            purgatory.check_and_complete(number)

    together(*(lambda seed=seed: attempt(seed) for seed in range(THREADS)))
    assert [op.completions for op in operations] == [1] * len(operations)


def test_two_purgatories_that_announce_each_others_keys_do_not_deadlock(together, real_purgatory, operation):
    """Completing in one purgatory checks the other while it is doing the same the other way."""
    purgatories = [real_purgatory(name) for name in ("one", "two")]

    def run(index):
        mine, other = purgatories[index], purgatories[1 - index]

        class Operation(operation):
            def on_complete(self):
                super().on_complete()
                other.check_and_complete("elsewhere")

        for _ in range(500):
            op = Operation(5)
            mine.try_complete_else_watch(op, ("here", "elsewhere"))
            op.completable = True
            mine.check_and_complete("here")
            assert op.is_completed()

    together(*(lambda index=index: run(index) for index in (0, 1, 0, 1)))
    for purgatory in purgatories:
        assert purgatory.num_delayed() == 0


def test_shutdown_while_operations_are_parked_and_expire_leaves_nothing(together, real_purgatory, operation):
    for _ in range(10):
        purgatory = real_purgatory()
        refused = threading.Event()

        def park(purgatory=purgatory, refused=refused):
            while not refused.is_set():
                try:
                    purgatory.try_complete_else_watch(operation(1), ("a",))
                except RuntimeError:
                    refused.set()

        together(park, purgatory.shutdown)
        assert refused.is_set()
        assert (purgatory.num_delayed(), purgatory.watched()) == (0, 0)
        assert purgatory.watch_lists() == []
        names = {thread.name for thread in threading.enumerate()}
        assert not {"ExpirationReaper-0-race", "executor-race"} & names


def test_operations_without_a_lock_are_called_back_once_in_any_race(together, real_purgatory):
    """Threads force, announce and let expire what another thread is about to park."""
    purgatory = real_purgatory(purge_interval=20)
    per_thread = 500
    answers = []
    shared = []

    def park():
        chance = random.Random(len(shared))
        for _ in range(per_thread):
            op = PendingOperation(chance.choice((0, 1, 5)), answers.append)
            shared.append(op)
            purgatory.try_complete_else_watch(op, chance.sample(range(5), 2))

    def meddle(seed):
        chance = random.Random(seed)
        for _ in range(per_thread * 2):
            if shared:
                op = shared[-1 - min(chance.randrange(3), len(shared) - 1)]
                if chance.random() < 0.5:
                    op.ready = True
                if chance.random() < 0.3:
                    op.force_complete()
            purgatory.check_and_complete(chance.randrange(5))

    together(park, park, lambda: meddle(1), lambda: meddle(2))
    for op in shared:
        op.force_complete()
    for key in range(5):
        purgatory.check_and_complete(key)
    assert len(shared) == per_thread * 2
    assert (purgatory.num_delayed(), purgatory.watched()) == (0, 0)
    purgatory.shutdown()
    assert len(answers) == len(shared)


def test_an_operation_that_is_forced_while_it_is_parked_completes_once(together, real_purgatory, operation):
    purgatory = real_purgatory(reaper_enabled=False)
    for _ in range(600):
        op = operation(3_600_000)
        wins = []
        together(
            lambda op=op: purgatory.try_complete_else_watch(op, ("a", "b")),
            *(lambda op=op, wins=wins: wins.append(op.force_complete()) for _ in range(2)),
        )
        assert (op.completions, sorted(wins)) == (1, [False, True])
        assert purgatory.num_delayed() == 0
        purgatory.check_and_complete("a")
        purgatory.check_and_complete("b")
        assert purgatory.watched() == 0


def test_figures_are_of_one_moment_while_operations_come_and_go(together, real_purgatory, operation):
    purgatory = real_purgatory(purge_interval=10)
    done = threading.Event()

    def work():
        for number in range(3_000):
            op = operation(number % 7)
            purgatory.try_complete_else_watch(op, ("a", "b"))
            op.completable = number % 3 == 0
            purgatory.check_and_complete("a")
        done.set()

    def read():
        while not done.is_set():
            statistics = purgatory.statistics()
            assert 0 <= statistics.completed <= statistics.total_watched
            assert statistics.num_delayed <= statistics.estimated_total_operations
            for parked in purgatory.parked():
                assert set(parked.keys) <= {"a", "b"}

    together(work, read, read)
