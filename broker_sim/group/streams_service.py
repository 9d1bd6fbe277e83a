"""The streams groups of one broker, as their APIs see them; mirrors their part of `GroupCoordinatorService`.

`on_error` gets an `ApiError` with what clients are told, as in `GroupCoordinatorService`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.group.by_partition import describe_each
from broker_sim.group.modern.settings import GroupSettings
from broker_sim.group.streams.requests import check_heartbeat
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.group import GroupClient
    from broker_sim.group.shards import GroupShards
    from broker_sim.group.streams.streams_groups import HeartbeatAnswer

Described = messages.StreamsGroupDescribeResponse.DescribedGroup


class StreamsGroupService:
    """Serves the streams groups of this broker. Thread rule: the broker's loop."""

    def __init__(self, broker: BrokerContext, shards: GroupShards) -> None:
        """Serve the streams groups among the groups of these shards."""
        self._shards = shards
        self._settings = GroupSettings(broker, StreamsGroup.kind)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return the interval at which members of that group are told to send heartbeats."""
        return self._settings.heartbeat_interval_ms(group_id)

    def heartbeat(
        self,
        request: messages.StreamsGroupHeartbeatRequest,
        client: GroupClient,
        on_answer: Callable[[HeartbeatAnswer], object],
        on_error: Callable[[ApiError], object],
    ) -> None:
        """Serve a member: it joins, stays or leaves."""
        try:
            check_heartbeat(request)
        except ApiError as error:
            on_error(error)
            return
        self._shards.write(
            request.group_id, lambda shard: shard.streams.heartbeat(request, client), on_answer, on_error
        )

    def describe(self, group_ids: Sequence[str]) -> list[messages.StreamsGroupDescribeResponse.DescribedGroup]:
        """Describe streams groups; one that cannot be has its error."""
        return describe_each(
            group_ids,
            self._shards.runtime.partition_for,
            lambda group_id: self._shards.find(group_id).streams.describe(group_id),
            Described,
        )
