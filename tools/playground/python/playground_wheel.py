"""A timer whose clock is moved by hand, for the page; and what other timers would have done for the same tasks."""

from __future__ import annotations

import heapq
import json

from broker_sim.purgatory import SystemTimer, TimerTask, VirtualClock


class Wheel:
    """A timer whose clock is moved by hand, and what a heap would have done for the same tasks."""

    def __init__(self, tick_ms=1, size=20):
        self.clock = VirtualClock()
        self.timer = SystemTimer("by hand", tick_ms=tick_ms, wheel_size=size, clock=self.clock, executor=self)
        self.log = []
        self.tasks = {}
        self.levels = {}
        self.counts = {"added": 0, "cancelled": 0, "ran": 0, "fell": 0, "buckets": 0, "comparisons": 0, "late": 0}
        self.heap = []

    def submit(self, work):
        """Run what expires at once."""
        work()

    def shutdown(self):
        """Do nothing: there is no thread."""

    def say(self, text):
        """Add a line to the log."""
        self.log.append({"at_ms": self.clock.now_ms(), "text": text})

    def add(self, delay_ms):
        """Add a task."""
        wheel = self

        class Task(TimerTask):
            __slots__ = ("name",)

            def run(self):
                wheel.ran(self)

        task = Task(delay_ms)
        self.counts["added"] += 1
        task.name = f"#{self.counts['added']}"
        self.tasks[task.name] = (task, self.clock.now_ms() + delay_ms)
        heapq.heappush(self.heap, _Counted(self.clock.now_ms() + delay_ms, self.counts))
        self.timer.add(task)
        if task.name in self.tasks:
            self.say(f"{task.name} is added, due at {self.clock.now_ms() + delay_ms} ms")
            self.note_falls(quietly=True)

    def ran(self, task):
        """Note that a task has run."""
        due_ms = self.tasks.pop(task.name)[1]
        self.levels.pop(task.name, None)
        self.counts["ran"] += 1
        late_ms = self.clock.now_ms() - due_ms
        self.say(f"{task.name} runs" + (f", {late_ms} ms late" if late_ms else ""))
        while self.heap and self.heap[0].due_ms <= due_ms:  # a heap drops cancelled tasks only when they are due
            heapq.heappop(self.heap)

    def cancel(self, name):
        """Cancel a task; without a name the one that is due last."""
        if not self.tasks:
            return
        name = name if name in self.tasks else max(self.tasks, key=lambda each: self.tasks[each][1])
        self.tasks.pop(name)[0].cancel()
        self.levels.pop(name, None)
        self.counts["cancelled"] += 1
        self.say(f"{name} is cancelled: unlinked from its bucket in one step")

    def step(self):
        """Move the clock to the next bucket and expire it."""
        due_ms = self.timer.next_expiration_ms()
        if due_ms is not None:
            self.advance(max(due_ms - self.clock.now_ms(), 0))

    def advance(self, ms):
        """Move the clock; buckets expire on the way, each at its time."""
        end_ms = self.clock.now_ms() + ms
        while (due_ms := self.timer.next_expiration_ms()) is not None and due_ms <= end_ms:
            self.move(due_ms)
            self.counts["buckets"] += 1
            self.timer.advance_clock(0)
            self.note_falls()
        self.move(end_ms)

    def move(self, now_ms):
        """Move the clock to a time that is not before now."""
        if now_ms > self.clock.now_ms():
            self.clock.advance(now_ms - self.clock.now_ms())

    def note_falls(self, *, quietly=False):
        """Note which tasks have fallen to a finer level."""
        for placed in self.timer.placements():
            name, level = getattr(placed.task, "name", None), placed.wheel_level
            before = self.levels.get(name, level)
            self.levels[name] = level
            if level < before and not quietly:
                self.counts["fell"] += 1
                self.say(f"{name} falls from level {before} to level {level}, bucket {placed.wheel_bucket}")

    def state(self):
        """Return what the page draws: the parts of a picture with one purgatory, and the queue of buckets."""
        now_ms = self.clock.now_ms()
        wheels, queue, parked = {}, {}, []
        for level, tick_ms, size, current_ms in self.timer.read_wheels(
            lambda wheels: [(each.level, each.tick_ms, each.wheel_size, each.current_time_ms) for each in wheels]
        ):
            wheels[level] = {
                "level": level,
                "tick_ms": tick_ms,
                "size": size,
                "current_time_ms": current_ms,
                "buckets": {},
            }
        for placed in self.timer.placements():
            name, (_, due_ms) = placed.task.name, self.tasks[placed.task.name]
            level = wheels[placed.wheel_level]
            level["buckets"][placed.wheel_bucket] = level["buckets"].get(placed.wheel_bucket, 0) + 1
            opens_ms = due_ms - due_ms % level["tick_ms"]
            queue.setdefault((opens_ms, placed.wheel_level, placed.wheel_bucket), []).append(name)
            parked.append({"id": name, "due_ms": due_ms, "level": placed.wheel_level, "bucket": placed.wheel_bucket,
                           "keys": [name], "client_id": f"task {name}"})  # fmt: skip
        purgatory = {
            "broker": 0, "name": "Timer", "num_delayed": len(parked), "watched": len(parked), "expired": 0,
            "wheel": [*wheels.values()], "parked": sorted(parked, key=lambda each: each["due_ms"]),
        }  # fmt: skip
        buckets = [
            {"opens_ms": opens_ms, "level": level, "bucket": bucket, "tasks": names}
            for (opens_ms, level, bucket), names in sorted(queue.items())
        ]
        return json.dumps(
            {"at_ms": now_ms, "set": {"purgatory/0/tasks": purgatory}, "gone": [], "queue": buckets,
             "log": self.log[-200:], "counts": self.counts, "heap": len(self.heap)}
        )  # fmt: skip


class _Counted:
    """An entry of a heap that counts comparisons."""

    __slots__ = ("counts", "due_ms")

    def __init__(self, due_ms, counts):
        self.due_ms, self.counts = due_ms, counts

    def __lt__(self, other):
        self.counts["comparisons"] += 1
        return self.due_ms < other.due_ms


_wheel = None


def do(verb, value=0):
    """Do one thing to the wheel, and return its state."""
    global _wheel
    if verb == "new" or _wheel is None:
        _wheel = Wheel(**(json.loads(value) if verb == "new" and value else {}))
    if verb == "add":
        for delay_ms in json.loads(value):
            _wheel.add(delay_ms)
    elif verb == "cancel":
        _wheel.cancel(value)
    elif verb == "step":
        _wheel.step()
    elif verb == "advance":
        _wheel.advance(value)
    return _wheel.state()
