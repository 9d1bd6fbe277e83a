"""The common part of group members of all protocols: they join, take part, commit and fetch offsets.

The offsets that a member commits only grow.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker_sim.chaos.random_run.checks.coordinators import informed_coordinator, newest_coordinator
from broker_sim.chaos.random_run.clients.coordinated_client import AgainError, CoordinatedClient, StepError, T
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.virtual_client import offset_fetch_request
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker_sim.chaos.random_run.checks.group_history import GroupHistory
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

SESSION_TIMEOUT_MS: Final = 1_000
REBALANCE_TIMEOUT_MS: Final = 1_500
LONGEST_PARKED_MS: Final = 2 * REBALANCE_TIMEOUT_MS
LONGEST_ABSENCE_MS: Final = 2_500
REFETCH_SHARE: Final = 0.3
"""Share of steps in which a member fetches its committed offset instead of committing one."""
STABLE_SHARE: Final = 0.5
"""Share of OffsetFetch requests with `require_stable`."""

WRONG_BROKER: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class JoinAgainError(StepError):
    """The member was removed or belongs to an old generation, and has to join again."""


class GroupMember(CoordinatedClient):
    """A member of a group."""

    parked_ms = LONGEST_PARKED_MS
    leave_share: ClassVar[float]
    """Share of steps in which it leaves; the same share each for dying and for being silent."""
    commits_share: ClassVar[float]

    def __init__(self, shared: SharedState, name: str, group: str, chance: str, history: GroupHistory) -> None:
        super().__init__(shared, name, chance)
        self._group = group
        self._history = history
        self._member_id = ""
        self._epoch = NO_EPOCH
        """The member's generation or member epoch."""
        self._positions: dict[int, int | None] = {}
        """The next offset of each owned partition; None until it is fetched."""

    async def _live(self) -> None:
        while True:
            try:
                await self._join()
                while True:
                    await self._take_step(self._take_part)
            except JoinAgainError:
                await self._rest(self._rest_ms)

    async def _take_step(self, step: Callable[[], Awaitable[T]]) -> T:
        """Repeat a step with the current coordinator until it succeeds."""

        async def with_coordinator() -> T:
            await self._coordinator(self._group)
            return await step()

        return await self._repeat(with_coordinator)

    async def _join(self) -> None:
        raise NotImplementedError

    async def _send_heartbeat(self) -> None:
        raise NotImplementedError

    def _leave_request(self) -> Any:
        """Return the request to leave the group."""
        raise NotImplementedError

    def _reset_member(self) -> None:
        """Restart as a new member."""
        raise NotImplementedError

    def _check(self, error_code: int) -> None:
        """Raise the exception that fits an error code."""
        if error_code in WRONG_BROKER:
            self._forget(self._group)
            raise AgainError

    @property
    def _owner(self) -> str:
        """The identity under which this member's partitions are recorded."""
        return self._member_id

    async def _request(self, message: Any) -> Any:
        """Return the coordinator's response."""
        return await self._ask_coordinator(self._group, message)

    # -- taking part ------------------------------------------------------------------------------

    async def _take_part(self) -> None:
        """Send a heartbeat, commit, leave, die, or be silent for a while."""
        chance, share = self._chance.random(), self.leave_share
        if chance < share:
            await self._leave()
        elif chance < share + share:
            self._die()
        elif chance < share + share + share:
            self._rest_ms = LONGEST_ABSENCE_MS
        elif self._positions and chance < self.commits_share:
            await self._commit(self._chance.choice(list(self._positions)))
        else:
            await self._send_heartbeat()

    async def _leave(self) -> None:
        request = self._leave_request()
        self._reset_member()
        with suppress(AgainError):
            response = await self._request(request)
            if response.error_code in WRONG_BROKER:
                self._forget(self._group)
        raise JoinAgainError

    def _die(self) -> None:
        """Be silent for a while, perhaps longer than the session timeout, and come back as a new member."""
        self._client.disconnect(self._coordinators[self._group])
        self._reset_member()
        self._rest_ms = LONGEST_ABSENCE_MS
        raise JoinAgainError

    # -- offsets ----------------------------------------------------------------------------------

    async def _commit(self, partition: int) -> None:
        """Commit the next offset; fetch the committed one first if it is unknown, and now and then otherwise."""
        position = self._positions[partition]
        if position is None or self._is_drawn(REFETCH_SHARE):
            await self._fetch_offset(partition)
            return
        self._positions[partition] = offset = position + self._chance.randint(1, 9)
        request = messages.OffsetCommitRequest
        committed = request.OffsetCommitRequestPartition(partition, offset)
        commit = request(
            group_id=self._group,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._member_id,
            topics=[request.OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])],
        )
        response = await self._request(commit)
        self._check(response.topics[0].partitions[0].error_code)
        self._history.add_commit(partition, offset)

    async def _fetch_offset(self, partition: int) -> None:
        is_stable = self._is_drawn(STABLE_SHARE)
        response, counts = await self._ask_newest(
            self._group,
            self._offset_request(partition, is_stable),
            newest_coordinator if is_stable else informed_coordinator,
        )
        (answer,) = response.groups
        self._check(answer.error_code)
        offset = answer.topics[0].partitions[0]
        self._check(offset.error_code)
        if not counts:
            return  # Fetched again later: continuing from here might commit an older offset.
        self._history.check_committed(self._owner, self._epoch, partition, offset.committed_offset)
        if self._positions[partition] is None:
            self._positions[partition] = max(offset.committed_offset, 0)

    def _offset_request(self, partition: int, is_stable: bool) -> messages.OffsetFetchRequest:
        return offset_fetch_request(self._group, (TOPIC, partition), require_stable=is_stable)
