"""Members of a consumer group in a random run: they join, assign, beat, commit, leave and die.

Each is a classic consumer reduced to what its group sees of it. What members learn is kept in
`GroupHistory`, which says what may never happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.cluster.random_run.group_client import (
    LONGEST_ABSENCE_MS,
    LONGEST_PARKED_MS,
    NO_EPOCH,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    WRONG_BROKER,
    GroupClient,
)
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.cluster.random_run.group_history import GroupHistory
    from broker_sim.cluster.random_run.surroundings import Surroundings

__all__ = ["GROUP", "GroupMember"]

GROUP: Final = "group"
PROTOCOL: Final = "numbers"
LEAVES_SHARE: Final = 0.03
DIES_SHARE: Final = 0.03
STALLS_SHARE: Final = 0.03
JOIN_VERSION: Final = 9
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
LEAVE_VERSION: Final = 5


class GroupMember(GroupClient):
    """One member of the classic protocol."""

    def __init__(self, around: Surroundings, history: GroupHistory, number: int) -> None:
        super().__init__(around, f"member-{number}", GROUP, f"group/{number}", history)
        self._history = history

    def _take_error(self, error_code: int) -> bool:
        """Do what an error asks for; returns whether there is one."""
        self._around.cluster.trace.record(self._name, error_code, self._epoch)
        if error_code in WRONG_BROKER:
            self._coordinator = None
        elif error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._begin_anew()
        elif error_code:
            self._next = self._join
        return bool(error_code)

    def _begin_anew(self) -> None:
        self._member_id = ""
        self._epoch = NO_EPOCH
        self._positions = {}
        self._next = self._join

    # -- membership -------------------------------------------------------------------------------

    def _join(self) -> None:
        self._positions = {}
        request = messages.JoinGroupRequest
        protocol = request.JoinGroupRequestProtocol(PROTOCOL, b"")
        self._ask(
            request(
                group_id=GROUP,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type="numbers",
                protocols=[protocol],
            ),
            JOIN_VERSION,
            LONGEST_PARKED_MS,
            self._take_join,
        )

    def _take_join(self, response: messages.JoinGroupResponse) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
        elif not self._take_error(response.error_code):
            self._member_id = response.member_id
            self._epoch = response.generation_id
            member_ids = [member.member_id for member in response.members]
            self._next = lambda: self._sync(member_ids)

    def _sync(self, member_ids: list[str]) -> None:
        """Ask for the assignment; the leader, who is told the members, deals the partitions out."""
        request = messages.SyncGroupRequest
        dealt: dict[str, list[int]] = {member_id: [] for member_id in member_ids}
        for partition in range(self._around.schedule.partitions if member_ids else 0):
            dealt[self._group_random.choice(member_ids)].append(partition)
        self._ask(
            request(
                group_id=GROUP,
                generation_id=self._epoch,
                member_id=self._member_id,
                protocol_type="numbers",
                protocol_name=PROTOCOL,
                assignments=[
                    request.SyncGroupRequestAssignment(member_id, bytes(partitions))
                    for member_id, partitions in dealt.items()
                ],
            ),
            SYNC_VERSION,
            LONGEST_PARKED_MS,
            self._take_sync,
        )

    def _take_sync(self, response: messages.SyncGroupResponse) -> None:
        if self._take_error(response.error_code):
            return
        partitions = list(response.assignment)
        self._history.add_owner(self._epoch, self._member_id, partitions)
        self._positions = dict.fromkeys(partitions)
        self._next = self._live

    def _live(self) -> None:
        """Beat, commit, leave, die, or be silent and go on as if nothing had been."""
        chance = self._group_random.random()
        if chance < LEAVES_SHARE:
            self._leave()
        elif chance < LEAVES_SHARE + DIES_SHARE:
            self._die()
        elif chance < LEAVES_SHARE + DIES_SHARE + STALLS_SHARE:
            self._rest(LONGEST_ABSENCE_MS)
        elif self._positions and chance < 0.5:
            self._commit(self._group_random.choice(list(self._positions)))
        else:
            self._beat()

    def _beat(self) -> None:
        request = messages.HeartbeatRequest(GROUP, self._epoch, self._member_id)

        def take(response: messages.HeartbeatResponse) -> None:
            self._take_error(response.error_code)

        self._ask(request, HEARTBEAT_VERSION, LONGEST_PARKED_MS, take)

    def _leave(self) -> None:
        identity = messages.LeaveGroupRequest.MemberIdentity(self._member_id)
        request = messages.LeaveGroupRequest(group_id=GROUP, members=[identity])
        self._begin_anew()
        self._ask(
            request,
            LEAVE_VERSION,
            LONGEST_PARKED_MS,
            lambda response: None if response.error_code not in WRONG_BROKER else self._forget(),
        )

    def _forget(self) -> None:
        self._coordinator = None
