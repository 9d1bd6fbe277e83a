"""Members of a consumer group in a random run: they join, assign, beat, commit, leave and die.

Each is a classic consumer reduced to what its group sees of it. Offsets that it commits only grow.
What members learn is kept in `GroupHistory`, which says what may never happen.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.random_run.clients import TOPIC, ClientLoop
from broker_sim.cluster.random_run.coordinators import informed_coordinator
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.random_run.clients import Surroundings
    from broker_sim.cluster.random_run.group_history import GroupHistory
    from broker_sim.cluster.virtual_client import PendingResponse

__all__ = ["GROUP", "SESSION_TIMEOUT_MS", "GroupMember"]

GROUP: Final = "group"
PROTOCOL: Final = "numbers"
SESSION_TIMEOUT_MS: Final = 1_000
REBALANCE_TIMEOUT_MS: Final = 1_500
LONGEST_PARKED_MS: Final = 2 * REBALANCE_TIMEOUT_MS
LONGEST_ABSENCE_MS: Final = 2_500
LEAVES_SHARE: Final = 0.03
DIES_SHARE: Final = 0.03
STALLS_SHARE: Final = 0.03
ASKS_AGAIN_SHARE: Final = 0.3
"""How often a member that might commit an offset looks whether those it has committed are there."""
STABLE_SHARE: Final = 0.5
"""How often an OffsetFetch has `require_stable`."""
FIND_COORDINATOR_VERSION: Final = 6
JOIN_VERSION: Final = 9
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
LEAVE_VERSION: Final = 5
COMMIT_VERSION: Final = 9
FETCH_VERSION: Final = 9
NO_GENERATION: Final = -1

WRONG_BROKER: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class GroupMember(ClientLoop):
    """One member; `_send_next` does whatever comes next for it."""

    def __init__(self, around: Surroundings, history: GroupHistory, number: int) -> None:
        super().__init__(around, f"member-{number}")
        self._history = history
        self._group_random = random.Random(f"{around.schedule.seed}/group/{number}")
        self._coordinator: int | None = None
        self._member_id = ""
        self._generation = NO_GENERATION
        self._positions: dict[int, int | None] = {}
        """What it may commit for each partition that it owns; None until it has asked."""
        self._next: Callable[[], None] = self._join

    def _send_next(self) -> None:
        if not self._around.running:
            return
        if self._coordinator is None:
            self._find_coordinator()
        else:
            self._next()

    def _ask(
        self, message: Any, version: int, timeout_ms: int, take: Callable[[Any], None]
    ) -> None:
        """Send to the coordinator, take the response, and go on a little later."""
        assert self._coordinator is not None

        def done(pending: PendingResponse) -> None:
            if pending.disconnected:
                self._coordinator = None
            else:
                take(pending.response)
            self._rest(50)

        self._send(self._coordinator, message, version, timeout_ms, done)

    def _find_coordinator(self) -> None:
        self._coordinator = self._group_random.randint(1, self._around.schedule.brokers)
        request = messages.FindCoordinatorRequest(coordinator_keys=[GROUP])

        def take(response: messages.FindCoordinatorResponse) -> None:
            (found,) = response.coordinators
            self._coordinator = None if found.error_code else found.node_id

        self._ask(request, FIND_COORDINATOR_VERSION, 0, take)

    def _take_error(self, error_code: int) -> bool:
        """Do what an error asks for; returns whether there is one."""
        self._around.cluster.trace.record(self._name, error_code, self._generation)
        if error_code in WRONG_BROKER:
            self._coordinator = None
        elif error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._begin_anew()
        elif error_code:
            self._next = self._join
        return bool(error_code)

    def _begin_anew(self) -> None:
        self._member_id = ""
        self._generation = NO_GENERATION
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
            self._generation = response.generation_id
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
                generation_id=self._generation,
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
        self._history.add_owner(self._generation, self._member_id, partitions)
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
        request = messages.HeartbeatRequest(GROUP, self._generation, self._member_id)

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

    def _die(self) -> None:
        """Be silent for a while, perhaps for longer than the session, and come back as another."""
        assert self._coordinator is not None
        self._client.disconnect(self._coordinator)
        self._begin_anew()
        self._rest(LONGEST_ABSENCE_MS)

    # -- offsets ----------------------------------------------------------------------------------

    def _commit(self, partition: int) -> None:
        """Commit the next offset; who does not know where to begin asks first, and others now and then."""
        position = self._positions[partition]
        if position is None or self._group_random.random() < ASKS_AGAIN_SHARE:
            self._fetch_offset(partition)
            return
        self._positions[partition] = offset = position + self._group_random.randint(1, 9)
        request = messages.OffsetCommitRequest
        committed = request.OffsetCommitRequestPartition(partition, offset)
        topic = request.OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])

        def take(response: messages.OffsetCommitResponse) -> None:
            error_code = response.topics[0].partitions[0].error_code
            if not self._take_error(error_code):
                self._history.add_commit(partition, offset)

        self._ask(
            request(
                group_id=GROUP,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                topics=[topic],
            ),
            COMMIT_VERSION,
            LONGEST_PARKED_MS,
            take,
        )

    def _fetch_offset(self, partition: int) -> None:
        generation = self._generation
        is_stable = self._group_random.random() < STABLE_SHARE
        asked = self._informed_coordinator()
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopics
        group = request.OffsetFetchRequestGroup(
            GROUP,
            topics=[topic(name=TOPIC, partition_indexes=[partition])],
        )

        def take(response: messages.OffsetFetchResponse) -> None:
            (answer,) = response.groups
            if self._take_error(answer.error_code):
                return
            found = answer.topics[0].partitions[0]
            if self._take_error(found.error_code):
                return
            is_informed = asked is not None and asked == self._informed_coordinator()
            if not (is_stable or is_informed):
                return  # It asks again: going on from there might commit an older offset.
            self._history.check_committed(generation, partition, found.committed_offset)
            if self._positions[partition] is None:
                self._positions[partition] = max(found.committed_offset, 0)

        self._ask(
            request(groups=[group], require_stable=is_stable),
            FETCH_VERSION,
            LONGEST_PARKED_MS,
            take,
        )

    def _informed_coordinator(self) -> tuple[int, int] | None:
        assert self._coordinator is not None
        return informed_coordinator(self._around.cluster, self._coordinator)
