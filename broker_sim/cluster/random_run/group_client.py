"""What members of both protocols have in common: they find their coordinator, commit offsets, and look at them.

Offsets that a member commits only grow.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker_sim.cluster.random_run.clients import ClientLoop
from broker_sim.cluster.random_run.coordinators import informed_coordinator, newest_coordinator
from broker_sim.cluster.random_run.surroundings import TOPIC
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.random_run.surroundings import Surroundings
    from broker_sim.cluster.virtual_client import PendingResponse

__all__ = [
    "LONGEST_ABSENCE_MS",
    "LONGEST_PARKED_MS",
    "NO_EPOCH",
    "REBALANCE_TIMEOUT_MS",
    "SESSION_TIMEOUT_MS",
    "WRONG_BROKER",
    "CommittedOffsets",
    "GroupClient",
]

SESSION_TIMEOUT_MS: Final = 1_000
REBALANCE_TIMEOUT_MS: Final = 1_500
LONGEST_PARKED_MS: Final = 2 * REBALANCE_TIMEOUT_MS
LONGEST_ABSENCE_MS: Final = 2_500
ASKS_AGAIN_SHARE: Final = 0.3
"""How often a member that might commit an offset looks whether those it has committed are there."""
STABLE_SHARE: Final = 0.5
"""How often an OffsetFetch has `require_stable`."""
FIND_COORDINATOR_VERSION: Final = 6
COMMIT_VERSION: Final = 9
FETCH_VERSION: Final = 9
NO_EPOCH: Final = -1

WRONG_BROKER: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class CommittedOffsets(Protocol):
    """What a group's members have learned of its offsets."""

    def add_commit(self, partition: int, offset: int) -> None:
        """Add a commit that was acknowledged."""

    def check_committed(self, member: str, epoch: int, partition: int, offset: int) -> None:
        """Compare what a member has read in that epoch; raise if it is behind what was acknowledged."""


class GroupClient(ClientLoop):
    """A member of a group; `_next` does whatever comes next for it."""

    def __init__(
        self, around: Surroundings, name: str, group: str, chance: str, offsets: CommittedOffsets
    ) -> None:
        super().__init__(around, name)
        self._group = group
        self._offsets = offsets
        self._group_random = random.Random(f"{around.schedule.seed}/{chance}")
        self._coordinator: int | None = None
        self._member_id = ""
        self._epoch = NO_EPOCH
        """Its generation, or its member epoch."""
        self._positions: dict[int, int | None] = {}
        """What it may commit for each partition that it owns; None until it has asked."""
        self._next: Callable[[], None] = self._join

    def _join(self) -> None:
        raise NotImplementedError

    def _take_error(self, error_code: int) -> bool:
        """Do what an error asks for; returns whether there is one."""
        raise NotImplementedError

    @property
    def _owner(self) -> str:
        """As whom it owns partitions."""
        return self._member_id

    def _send_next(self) -> None:
        if not self._around.running:
            return
        if self._coordinator is None:
            self._find_coordinator()
        else:
            self._next()

    def _ask(
        self,
        message: Any,
        version: int,
        timeout_ms: int,
        take: Callable[[Any], None],
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        """Send to the coordinator, take the response, and go on a little later."""
        assert self._coordinator is not None

        def done(pending: PendingResponse) -> None:
            if pending.disconnected:
                self._coordinator = None
                if on_lost is not None:
                    on_lost()
            else:
                take(pending.response)
            self._rest(50)

        self._send(self._coordinator, message, version, timeout_ms, done)

    def _find_coordinator(self) -> None:
        self._coordinator = self._group_random.randint(1, self._around.schedule.brokers)
        request = messages.FindCoordinatorRequest(coordinator_keys=[self._group])

        def take(response: messages.FindCoordinatorResponse) -> None:
            (found,) = response.coordinators
            self._coordinator = None if found.error_code else found.node_id

        self._ask(request, FIND_COORDINATOR_VERSION, 0, take)

    def _die(self) -> None:
        """Be silent for a while, perhaps for longer than the session, and come back as another."""
        assert self._coordinator is not None
        self._client.disconnect(self._coordinator)
        self._begin_anew()
        self._rest(LONGEST_ABSENCE_MS)

    def _begin_anew(self) -> None:
        raise NotImplementedError

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
                self._offsets.add_commit(partition, offset)

        self._ask(
            request(
                group_id=self._group,
                generation_id_or_member_epoch=self._epoch,
                member_id=self._member_id,
                topics=[topic],
            ),
            COMMIT_VERSION,
            LONGEST_PARKED_MS,
            take,
        )

    def _fetch_offset(self, partition: int) -> None:
        epoch, owner = self._epoch, self._owner
        is_stable = self._group_random.random() < STABLE_SHARE
        look = newest_coordinator if is_stable else informed_coordinator
        coordinator = self._coordinator
        assert coordinator is not None
        asked = look(self._around.cluster, coordinator)

        def take(response: messages.OffsetFetchResponse) -> None:
            (answer,) = response.groups
            if self._take_error(answer.error_code):
                return
            found = answer.topics[0].partitions[0]
            if self._take_error(found.error_code):
                return
            if asked is None or asked != look(self._around.cluster, coordinator):
                return  # It asks again: going on from there might commit an older offset.
            self._offsets.check_committed(owner, epoch, partition, found.committed_offset)
            if self._positions[partition] is None:
                self._positions[partition] = max(found.committed_offset, 0)

        self._ask(
            self._offset_request(partition, is_stable), FETCH_VERSION, LONGEST_PARKED_MS, take
        )

    def _offset_request(self, partition: int, is_stable: bool) -> messages.OffsetFetchRequest:
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[partition])
        group = request.OffsetFetchRequestGroup(self._group, topics=[topic])
        return request(groups=[group], require_stable=is_stable)
