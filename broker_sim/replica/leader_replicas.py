"""The followers of a partition at its leader, and the ISR; part of `kafka.cluster.Partition`.

It decides which followers should join or leave the ISR; the partition sends the proposal to the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.replica.isr_state import CommittedIsr, IsrState, PendingIsr
from broker_sim.replica.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim_purgatory import Clock

    from broker_sim.metadata.cache import MetadataCache

_NONE: Final[frozenset[int]] = frozenset()
_NO_ISR: Final = CommittedIsr(_NONE)
"""One for all partitions that a broker only follows."""

STATE_IS_OLD = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""Errors that mean that the leader's metadata is stale: the leader waits for newer metadata."""


class LeaderReplicas:
    """The followers of one partition, as seen by their leader, and the ISR."""

    __slots__ = ("_broker_id", "_lag_time_max_ms", "clock", "followers", "isr_state", "metadata")

    def __init__(self, broker_id: int, clock: Clock, lag_time_max_ms: int, metadata: MetadataCache) -> None:
        self.followers: dict[int, Replica] = {}
        self.isr_state: IsrState = _NO_ISR
        self._broker_id = broker_id
        self.clock = clock
        self._lag_time_max_ms = lag_time_max_ms
        self.metadata = metadata

    def assign(self, replicas: Iterable[int], isr: Iterable[int]) -> None:
        """Keep one `Replica` for each follower, and set the ISR that the controller has committed."""
        self.wake()
        followers = {replica for replica in replicas if replica != self._broker_id}
        for removed in self.followers.keys() - followers:
            del self.followers[removed]
        for added in sorted(followers - self.followers.keys()):
            self.followers[added] = Replica(added)
        self.isr_state = CommittedIsr(frozenset(isr))

    def clear(self) -> None:
        """Drop all followers and the ISR, because this broker no longer leads the partition."""
        self.wake()
        self.followers.clear()
        self.isr_state = _NO_ISR

    def start_epoch(self, leader_end_offset: int, is_new_leader: bool) -> None:
        """Start a leader epoch: members of the ISR count as caught up now, all others as never caught up."""
        self.wake()
        now_ms = self.clock.now_ms()
        for follower in self.followers.values():
            is_in_sync = follower.broker_id in self.isr_state.isr
            follower.reset(
                now_ms=now_ms, leader_end_offset=leader_end_offset, is_new_leader=is_new_leader, is_in_sync=is_in_sync
            )

    def high_watermark_candidate(self, leader_end_offset: int) -> int:
        """Return the smallest log end offset of the maximal ISR and of the caught-up followers outside it."""
        candidate = leader_end_offset
        if not self.followers:
            return candidate
        maximal_isr = self.isr_state.maximal_isr
        for follower in self.followers.values():
            if follower.log_end_offset < candidate and (
                follower.broker_id in maximal_isr or self._is_joining(follower, leader_end_offset)
            ):
                candidate = follower.log_end_offset
        return candidate

    def _is_joining(self, follower: Replica, leader_end_offset: int) -> bool:
        now_ms = self.clock.now_ms()
        return follower.is_caught_up(
            leader_end_offset, now_ms, self._lag_time_max_ms
        ) and self.metadata.is_isr_eligible(follower.broker_id, follower.broker_epoch)

    def may_be_idle(self, follower: Replica) -> bool:
        """Whether the follower's fetches may skip this partition while it has nothing new.

        Not while the follower could join the ISR: whether it is eligible is checked at every fetch.
        """
        return self.isr_state.is_inflight or follower.broker_id in self.isr_state.isr

    def wake(self) -> None:
        """Make the followers' sessions read the partition again, because it has changed."""
        for follower in self.followers.values():
            if follower.idle is not None:
                follower.idle.wake()

    def low_watermark(self, leader_start_offset: int) -> int:
        """Return the smallest log start offset of the live replicas."""
        low = leader_start_offset
        for follower in self.followers.values():
            if follower.log_start_offset < low and self.metadata.is_alive(follower.broker_id):
                low = follower.log_start_offset
        return low

    def may_join_isr(self, follower: Replica, high_watermark: int, epoch_start_offset: int) -> bool:
        """Whether the follower has reached the high watermark and this epoch's start, and is eligible."""
        return (
            not self.isr_state.is_inflight
            and follower.broker_id not in self.isr_state.isr
            and follower.log_end_offset >= high_watermark
            and follower.log_end_offset >= epoch_start_offset
            and self.metadata.is_isr_eligible(follower.broker_id, follower.broker_epoch)
        )

    def out_of_sync(self, leader_end_offset: int) -> frozenset[int]:
        """Return the followers in the ISR that have not caught up for `replica.lag.time.max.ms`."""
        now_ms = self.clock.now_ms()
        out_of_sync = []
        for member in self.isr_state.isr:
            if member == self._broker_id:
                continue
            follower = self.followers.get(member)
            if follower is None or not (
                follower.idle is not None  # it has all of the log
                or follower.is_caught_up(leader_end_offset, now_ms, self._lag_time_max_ms)
            ):
                out_of_sync.append(member)
        return frozenset(out_of_sync) if out_of_sync else _NONE

    def propose(self, isr: frozenset[int], leader_epoch: int, partition_epoch: int) -> PendingIsr | None:
        """Make the change pending and return it; None if another one is in flight."""
        committed = self.isr_state
        if isinstance(committed, PendingIsr):
            return None
        epochs = {member: self._broker_epoch_of(member) for member in sorted(isr)}
        pending = PendingIsr(epochs, committed, leader_epoch, partition_epoch)
        self._set_isr_state(pending)
        return pending

    def commit(self, isr: frozenset[int]) -> None:
        """Set the ISR that the controller has accepted."""
        self._set_isr_state(CommittedIsr(isr))

    def refuse(self, proposed: PendingIsr, error_code: ErrorCode) -> bool:
        """Handle a refusal by the controller; return whether to send the same change again.

        After a refusal in `STATE_IS_OLD` the state stays pending until new metadata arrives, so that
        the high watermark keeps using the maximal ISR.
        """
        if self.isr_state is not proposed:
            return False
        if error_code in {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}:
            self._set_isr_state(proposed.last_committed)
            return False
        return error_code not in STATE_IS_OLD

    def _set_isr_state(self, isr_state: IsrState) -> None:
        self.wake()
        self.isr_state = isr_state

    def _broker_epoch_of(self, member: int) -> int:
        follower = self.followers.get(member)
        return -1 if follower is None or follower.broker_epoch is None else follower.broker_epoch
