"""Members of groups whose coordinator assigns (KIP-848, KIP-1071) in a random run.

Each does what Kafka's `AbstractMembershipManager` does: it sends heartbeats, revokes partitions that are not in its
assignment and reports that, and starts again when it is fenced. Some take long to revoke. A `ModernHistory` checks
what members learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.checks.group_history import Term
from broker_sim.chaos.random_run.clients.coordinated_client import AgainError
from broker_sim.chaos.random_run.clients.group_member import (
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    GroupMember,
    JoinAgainError,
)
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from broker_sim.chaos.random_run.checks.group_history import ModernHistory
    from broker_sim.chaos.random_run.clients.shared_state import SharedState
    from broker_sim.protocol import messages

IS_SLOW_SHARE: Final = 0.2
"""Share of revocations that a member delays."""
GIVES_UP_SHARE: Final = 0.1
"""Share of heartbeats before which it ends the delay; otherwise it is fenced after the rebalance timeout."""
JOINS: Final = 0
"""The epoch of a joining member."""

FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
LATER: Final = frozenset({ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.STALE_MEMBER_EPOCH})
"""Errors after which it retries: another member still has its instance id, or its next heartbeat helps."""


class ModernMember(GroupMember):
    """One member; subclasses build the heartbeats of their protocol."""

    leave_share = 0.02
    commits_share = 0.4

    _history: ModernHistory

    def __init__(self, shared: SharedState, name: str, group: str, chance: str, history: ModernHistory) -> None:
        super().__init__(shared, name, group, chance, history)
        self._lives = 0
        self._assigned: tuple[int, ...] = ()
        """The assigned partitions, which it owns once it has revoked the others."""
        self._tells_all = True
        self._tells_owned = True
        self._oldest_request_ms: int | None = None
        """Time of the first heartbeat whose response might have revoked partitions that it still owns."""
        self._safe_until_ms: int | None = None
        """Time until which no coordinator may fence it; None if a response was lost, so that its epoch may be old."""
        self._safe_since_ms = 0
        """Time of the heartbeat that extended `safe_until_ms`; an admin client may have removed the member since."""
        self._reset_member()

    def _reset_member(self) -> None:
        self._lives += 1
        self._member_id = f"{self._name}-{self._lives}"
        self._lose_all()

    def _lose_all(self) -> None:
        self._positions = {}
        self._epoch = JOINS
        self._assigned = ()
        self._tells_all = True
        self._oldest_request_ms = self._safe_until_ms = None

    def _check(self, error_code: int) -> None:
        if not error_code:
            return
        self._record(self._name, error_code, self._epoch)
        super()._check(error_code)
        if error_code in FENCED:
            self._history.give_up(self._owner)
            self._lose_all()
            raise JoinAgainError
        if error_code not in LATER:
            violated("errors-are-expected", f"{self._name} got {ErrorCode(error_code).name}")
        raise AgainError

    # -- heartbeats -------------------------------------------------------------------------------

    async def _join(self) -> None:
        await self._take_step(self._send_heartbeat)

    async def _send_heartbeat(self) -> None:
        if self._is_giving_up and self._is_drawn(GIVES_UP_SHARE):
            self._take_assigned()
        request = self._heartbeat()
        sent_ms = self._shared.cluster.now_ms
        if self._oldest_request_ms is None:
            self._oldest_request_ms = sent_ms
        safe_until_ms = self._safe_until_ms
        # Unknown until the response arrives.
        self._tells_all, self._safe_until_ms = True, None
        response, is_newest = await self._ask_newest(self._group, request)
        if is_newest and response.error_code in FENCED:
            self._check_may_be_fenced(response.error_code, safe_until_ms)
        self._check(response.error_code)
        self._take_answer(response, sent_ms, is_newest=is_newest)

    @property
    def _may_have_missed(self) -> bool:
        """Whether its assignment may have changed without its knowledge."""
        return False

    @property
    def _is_giving_up(self) -> bool:
        """Whether it still owns partitions that are no longer assigned to it."""
        return not self._positions.keys() <= set(self._assigned)

    def _heartbeat(self) -> Any:
        """Return the next heartbeat: a full one after a lost response, otherwise with the changes."""
        raise NotImplementedError

    def _assigned_in(self, response: Any) -> tuple[int, ...] | None:
        """Return the partitions that a response assigns; None if they have not changed."""
        raise NotImplementedError

    def _check_may_be_fenced(self, error_code: int, safe_until_ms: int | None) -> None:
        now_ms = self._shared.cluster.now_ms
        if safe_until_ms is None or self._history.may_be_removed_since(self._safe_since_ms):
            return
        if now_ms < safe_until_ms:
            violated(
                "live-members-stay",
                f"{self._name} got {ErrorCode(error_code).name} in epoch {self._epoch}, "
                f"{safe_until_ms - now_ms} ms before it may be fenced",
            )

    def _take_answer(self, response: Any, sent_ms: int, *, is_newest: bool) -> None:
        if is_newest and response.member_epoch < self._epoch:
            violated("member-epochs-grow", f"{self._name} was in epoch {self._epoch} and got {response.member_epoch}")
        self._epoch = response.member_epoch
        self._tells_all = self._tells_owned = False
        assigned = self._assigned_in(response)
        if assigned is not None:
            self._take_assignment(assigned)
        self._record(self._name, self._epoch, *self._positions)
        assert self._oldest_request_ms is not None
        until_ms = min(sent_ms + SESSION_TIMEOUT_MS, self._oldest_request_ms + REBALANCE_TIMEOUT_MS)
        self._safe_since_ms = sent_ms
        if not self._is_giving_up and not self._tells_owned and not self._may_have_missed:
            self._oldest_request_ms = None
        if is_newest:
            self._safe_until_ms = until_ms
            now_ms, term = self._shared.cluster.now_ms, Term(sent_ms, until_ms)
            self._history.add_owner(self._owner, self._epoch, self._positions, now_ms, term)

    def _take_assignment(self, assigned: tuple[int, ...]) -> None:
        self._assigned = assigned
        if not (self._is_giving_up and self._is_drawn(IS_SLOW_SHARE)):
            self._take_assigned()

    def _take_assigned(self) -> None:
        """Own exactly the assigned partitions; the next heartbeat reports that."""
        self._positions = {number: self._positions.get(number) for number in self._assigned}
        self._tells_owned = True

    def _offset_request(self, partition: int, is_stable: bool) -> messages.OffsetFetchRequest:
        request = super()._offset_request(partition, is_stable)
        request.groups[0].member_id = self._member_id
        request.groups[0].member_epoch = self._epoch
        return request
