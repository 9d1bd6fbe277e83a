"""A play's own lookups about share groups: whether they have settled, and their share coordinator."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.fuzz.lookup import NOT_YET, PlayError
from broker_sim_integration.fuzz.references import FINAL_EPOCH

if TYPE_CHECKING:
    from broker_sim_integration.fuzz.lookup import Lookup
    from broker_sim_integration.fuzz.side import FuzzedSide

SHARE: Final = 2
"""FindCoordinator's key type of share coordinators."""
INITIALIZED_S: Final = 4.0
RELEASED_S: Final = 0.1
"""Time until released records are available again, which no request shows."""
ANY_TOPIC_ID: Final = bytes(range(16))


class ShareLookup:
    """Sends lookups to the brokers of one side, for one play."""

    def __init__(self, side: FuzzedSide, lookup: Lookup) -> None:
        self._side = side
        self._lookup = lookup
        self._coordinator: int | None = None

    async def broker(self, at: str) -> int | None:
        """Return the broker of a request to the share coordinator, or to another broker."""
        if not at.endswith("share state"):
            return None
        coordinator = await self.coordinator()
        if at.startswith("other"):
            return next(one for one in self._side.brokers if one != coordinator)
        return coordinator

    async def coordinator(self) -> int:
        """Return the share coordinator; its topic has one partition."""
        if self._coordinator is None:
            await self._lookup.until(self._is_found, "share state has a coordinator")
        assert self._coordinator is not None
        return self._coordinator

    async def _is_found(self) -> bool:
        """Whether a broker serves as coordinator: it is advertised before it has loaded its partition."""
        topic_id = urlsafe_b64encode(ANY_TOPIC_ID).decode().rstrip("=")
        request = messages.FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[f"warm:{topic_id}:0"])
        (coordinator,) = (await self._lookup.ask(self._side.brokers.first, request, 6)).coordinators
        if coordinator.error_code:
            return False
        summary = messages.ReadShareGroupStateSummaryRequest
        wanted = [summary.ReadStateSummaryData(ANY_TOPIC_ID, [summary.PartitionData(0, 0)])]
        answer = await self._lookup.ask(coordinator.node_id, summary("warm", wanted), 0)
        if answer.results[0].partitions[0].error_code not in NOT_YET:
            self._coordinator = coordinator.node_id
        return self._coordinator is not None

    async def settle_session(self, request: Any) -> None:
        """Wait until the records released by the end of a session are written, which is after the response."""
        if getattr(request, "share_session_epoch", None) == FINAL_EPOCH:
            await asyncio.sleep(RELEASED_S)

    async def settle(self, broker: int, request: Any, answer: Any) -> None:
        """Wait until a group has all the state that it needs after a request.

        Members get responses before the state of new partitions is initialized, and an alteration of offsets is
        answered before the group knows of it.
        """
        altered = {
            (topic.topic_name, partition.partition_index)
            for topic in getattr(answer, "responses", ())
            for partition in topic.partitions
            if not partition.error_code
        }
        with suppress(PlayError):  # a deleted topic has no state
            await self._lookup.until(
                lambda: self._has_state(broker, request.group_id, altered),
                "the state of a share group begins",
                INITIALIZED_S,
            )

    async def _has_state(self, broker: int, group_id: str, altered: set[tuple[str, int]]) -> bool:
        lookup = self._lookup
        describe = messages.ShareGroupDescribeRequest([group_id])
        (group,) = (await lookup.ask(broker, describe, 1)).groups
        names = {name for member in group.members for name in member.subscribed_topic_names}
        wanted = set(altered)
        for name in names:
            wanted.update((name, number) for number in await lookup.partitions(broker, name))
        if not wanted:
            return True
        offsets = messages.DescribeShareGroupOffsetsRequest
        asked = offsets([offsets.DescribeShareGroupOffsetsRequestGroup(group_id, None)])
        (told,) = (await lookup.ask(broker, asked, 1)).groups
        if told.error_code:
            return True  # the broker does not coordinate the group
        return wanted <= {
            (topic.topic_name, partition.partition_index) for topic in told.topics for partition in topic.partitions
        }
