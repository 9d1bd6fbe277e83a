"""The buckets that hold or held tasks, ordered by expiration: what the reaper waits on.

Mirrors the java.util.concurrent.DelayQueue inside Kafka's SystemTimer. Deliberate differences:
it shares the timer's lock, so adding a task takes one lock and not two; it waits through the
Clock, so virtual time never blocks; `wakeup` ends a wait at once.
"""

import threading
from heapq import heappop, heappush

from broker_sim_purgatory._timer_task_list import NOT_ENQUEUED, TimerTaskList
from broker_sim_purgatory.clock import Clock


class DelayQueue:
    """Buckets by expiration; equal expirations leave in the order of level, then index.

    A bucket's expiration never changes while it is in here: the wheel gives a bucket its next
    turn only after its clock has passed the last one, and by then it was polled.
    Thread rule: the caller holds `lock`; `poll` releases it while it waits.
    """

    __slots__ = ("_clock", "_condition", "_heap", "_waiting", "_wakeup")

    def __init__(self, clock: Clock, lock: threading.Lock) -> None:
        self._clock = clock
        self._condition = threading.Condition(lock)
        self._heap: list[tuple[int, int, int, TimerTaskList]] = []
        self._waiting = 0
        self._wakeup = False

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, bucket: TimerTaskList) -> bool:
        """Enqueue `bucket` under its expiration; return whether it is now first.

        If it is, the waiting thread wakes up.
        """
        heap = self._heap
        heappush(heap, (bucket.expiration_ms, bucket.level, bucket.index, bucket))
        if heap[0][3] is not bucket:
            return False
        if self._waiting:
            self._condition.notify_all()
        return True

    def poll_expired(self) -> TimerTaskList | None:
        """Remove and return the first bucket if it is due, else None. Never waits."""
        heap = self._heap
        if heap and heap[0][0] <= self._clock.now_ms():
            return heappop(heap)[3]
        return None

    def poll(self, timeout_ms: int) -> TimerTaskList | None:
        """Remove and return the first bucket that is due, waiting at most `timeout_ms` for it.

        None after the timeout, after `wakeup`, or at once on a clock that cannot wait.
        """
        clock = self._clock
        give_up_ms = clock.now_ms() + timeout_ms
        while (bucket := self.poll_expired()) is None:
            if self._wakeup or clock.now_ms() >= give_up_ms:
                self._wakeup = False
                return None
            until_ms = min(give_up_ms, self._heap[0][0]) if self._heap else give_up_ms
            self._waiting += 1
            try:
                if not clock.wait_until(self._condition, until_ms):
                    return None
            finally:
                self._waiting -= 1
        return bucket

    def wakeup(self) -> None:
        """End the wait of the thread in `poll` at once, or that of the next thread to call it."""
        self._wakeup = True
        self._condition.notify_all()

    def next_expiration_ms(self) -> int | None:
        """Return when the first bucket that holds a task is due; None if there is none.

        Emptied buckets before it are dropped on the way; their next task enqueues them again.
        """
        heap = self._heap
        while heap:
            expiration_ms, _, _, bucket = heap[0]
            if not bucket.is_empty():
                return expiration_ms
            bucket.expiration_ms = NOT_ENQUEUED
            heappop(heap)
        return None

    def clear(self) -> None:
        """Drop every bucket."""
        self._heap.clear()
