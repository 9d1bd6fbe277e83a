"""A join barrier: ten members come together, or those who came after 5 s go on without the rest.

It is how a consumer group forms in Kafka: every member's request waits, and one event answers
them all. Run it with ``python examples/join_barrier.py``; its time is virtual.
"""

import asyncio

from purgatory import (
    AwaitableOperation,
    DelayedOperationPurgatory,
    LoopTimer,
    run_virtual,
    wait_until,
)


class Barrier:
    """Waits for `members` to join, at most `timeout_ms` after the first one."""

    def __init__(self, members: int, timeout_ms: int) -> None:
        self._members = members
        self._timeout_ms = timeout_ms
        self._joined: list[str] = []
        self._closes_at: float | None = None
        self._closed = False
        self.purgatory: DelayedOperationPurgatory[AwaitableOperation] = DelayedOperationPurgatory(
            "join", LoopTimer("join")
        )

    async def join(self, member: str) -> list[str]:
        """Join; return who is in, which is the same for everybody who joined in time."""
        if self._closed:
            raise ValueError(f"{member} comes too late")
        now = asyncio.get_running_loop().time()
        if self._closes_at is None:
            self._closes_at = now + self._timeout_ms / 1_000
        self._joined.append(member)
        left_ms = round((self._closes_at - now) * 1_000)
        # The one who makes it complete wakes up the others; or else they time out together.
        await wait_until(self._is_complete, self.purgatory, ["group"], max(left_ms, 0))
        self._closed = True
        self.purgatory.check_and_complete("group")
        return self._joined

    def _is_complete(self) -> bool:
        return self._closed or len(self._joined) == self._members


async def join_after(barrier: Barrier, member: str, delay_s: float) -> str:
    """Let a member join after a while; return what it learns."""
    await asyncio.sleep(delay_s)
    joined = await barrier.join(member)
    return f"{asyncio.get_running_loop().time():.1f} s: {member} goes on with {len(joined)}"


async def run_members(delays_s: list[float]) -> list[str]:
    """Let one member join after each of the delays; return what they learn."""
    barrier = Barrier(members=10, timeout_ms=5_000)
    members = [f"member-{number}" for number in range(len(delays_s))]
    learned = await asyncio.gather(
        *(join_after(barrier, *each) for each in zip(members, delays_s, strict=True))
    )
    barrier.purgatory.shutdown()
    return learned


if __name__ == "__main__":
    print("all ten come:")
    print(*run_virtual(run_members([0.1 * number for number in range(10)])), sep="\n")
    print("three are missing:")
    print(*run_virtual(run_members([0.1 * number for number in range(7)])), sep="\n")
