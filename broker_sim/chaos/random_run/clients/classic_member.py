"""Members of a classic consumer group in a random run: they join, assign, send heartbeats, commit, leave and die.

Each is a classic consumer reduced to its group protocol. `ClassicHistory` checks what members learn.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.clients.coordinated_client import AgainError
from broker_sim.chaos.random_run.clients.group_member import (
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    GroupMember,
    JoinAgainError,
)
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import NO_EPOCH

if TYPE_CHECKING:
    from broker_sim.chaos.random_run.checks.group_history import ClassicHistory
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

GROUP: Final = "group"
PROTOCOL: Final = "numbers"
"""Name of the protocol type and of its only protocol."""


class ClassicMember(GroupMember):
    """One member of the classic protocol."""

    leave_share = 0.03
    commits_share = 0.5

    _history: ClassicHistory

    def __init__(self, shared: SharedState, number: int) -> None:
        name, chance = f"member-{number}", f"group/{number}"
        super().__init__(shared, name, GROUP, chance, shared.classic_history)

    def _check(self, error_code: int) -> None:
        self._record(self._name, error_code, self._epoch)
        super()._check(error_code)
        if error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._reset_member()
        if error_code:
            raise JoinAgainError

    def _reset_member(self) -> None:
        self._member_id = ""
        self._epoch = NO_EPOCH
        self._positions = {}

    async def _join(self) -> None:
        member_ids = await self._take_step(self._join_group)
        await self._take_step(partial(self._sync, member_ids))

    async def _join_group(self) -> list[str]:
        """Join; return the ids of all members, [] unless this member leads."""
        self._positions = {}
        request = messages.JoinGroupRequest
        message = request(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL,
            protocols=[request.JoinGroupRequestProtocol(PROTOCOL, b"")],
        )
        response = await self._request(message)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            raise AgainError
        self._check(response.error_code)
        self._member_id = response.member_id
        self._epoch = response.generation_id
        return [member.member_id for member in response.members]

    async def _sync(self, member_ids: list[str]) -> None:
        """Request the assignment; the leader, which has the members' ids, assigns the partitions."""
        request = messages.SyncGroupRequest
        assignments: dict[str, list[int]] = {member_id: [] for member_id in member_ids}
        for partition in range(self._shared.schedule.partitions if member_ids else 0):
            assignments[self._chance.choice(member_ids)].append(partition)
        message = request(
            group_id=GROUP,
            generation_id=self._epoch,
            member_id=self._member_id,
            protocol_type=PROTOCOL,
            protocol_name=PROTOCOL,
            assignments=[
                request.SyncGroupRequestAssignment(member_id, bytes(partitions))
                for member_id, partitions in assignments.items()
            ],
        )
        response = await self._request(message)
        self._check(response.error_code)
        partitions = list(response.assignment)
        self._history.add_owner(self._epoch, self._member_id, partitions)
        self._positions = dict.fromkeys(partitions)

    async def _send_heartbeat(self) -> None:
        request = messages.HeartbeatRequest(GROUP, self._epoch, self._member_id)
        response = await self._request(request)
        self._check(response.error_code)

    def _leave_request(self) -> Any:
        identity = messages.LeaveGroupRequest.MemberIdentity(self._member_id)
        return messages.LeaveGroupRequest(group_id=GROUP, members=[identity])
