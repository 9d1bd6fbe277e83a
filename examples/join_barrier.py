"""A join barrier: it opens when ten members have joined, or after 5 s for those that have.

A consumer group forms like this in Kafka: every member's request waits, and one event answers them all. Run it with
`python examples/join_barrier.py`; its time is virtual.
"""

from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, VirtualTimer

GROUP = "group"


class Join(DelayedOperation):
    """One member's request, answered when the barrier opens, or else at its deadline."""

    __slots__ = ("_barrier", "_member")

    def __init__(self, delay_ms: int, barrier: "Barrier", member: str) -> None:
        super().__init__(delay_ms)
        self._barrier = barrier
        self._member = member

    def try_complete(self) -> bool:
        """Complete if the barrier is open."""
        return self._barrier.is_open and self.force_complete()

    def on_complete(self) -> None:
        """Answer the member."""
        self._barrier.answer(self._member)

    def on_expiration(self) -> None:
        """Do nothing more: all waiting members have the same deadline."""


class Barrier:
    """Waits for `members` to join, at most `timeout_ms` after the first one."""

    def __init__(self, members: int, timeout_ms: int, timer: VirtualTimer) -> None:
        self._members = members
        self._timeout_ms = timeout_ms
        self._clock = timer.clock
        self._joined: list[str] = []
        self._closes_ms = 0
        self._purgatory: DelayedOperationPurgatory[Join] = DelayedOperationPurgatory("join", timer)

    @property
    def is_open(self) -> bool:
        """Whether all members have joined."""
        return len(self._joined) == self._members

    def join(self, member: str) -> None:
        """Join; the answer is printed later."""
        now_ms = self._clock.now_ms()
        if not self._joined:
            self._closes_ms = now_ms + self._timeout_ms
        self._joined.append(member)
        # The member that completes the group wakes the others; without one they time out together.
        self._purgatory.check_and_complete(GROUP)
        request = Join(self._closes_ms - now_ms, self, member)
        self._purgatory.try_complete_else_watch(request, [GROUP])

    def answer(self, member: str) -> None:
        """Print what the member learns."""
        print(f"{self._clock.now_ms() / 1_000:.1f} s: {member} goes on with {len(self._joined)}")


def run_members(members: int) -> None:
    """Let members join one after the other, 100 ms apart."""
    timer = VirtualTimer()
    barrier = Barrier(members=10, timeout_ms=5_000, timer=timer)
    for number in range(members):
        barrier.join(f"member-{number}")
        timer.advance(100)
    timer.run_until_idle()


if __name__ == "__main__":
    print("all ten come:")
    run_members(10)
    print("three are missing:")
    run_members(7)
