"""DescribeGroups (key 15), versions 0-6; mirrors `KafkaApis.handleDescribeGroupsRequest`.

Behaviour:
* classic groups only; one that does not exist, or is of the consumer protocol, is `Dead`
* a stable group shows its protocol and what the members subscribed to and were assigned
* the groups are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 3 has authorized operations, 6 GROUP_ID_NOT_FOUND for a group that does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.groups.by_partition import groups_by_partition
from broker_sim.handlers.support.authorized_operations import ALL_GROUP_OPERATIONS
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.shard import GroupShard
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_describe_groups"]

OPERATIONS_VERSION: Final = 3
NOT_FOUND_VERSION: Final = 6
DEAD: Final = "Dead"
Described = messages.DescribeGroupsResponse.DescribedGroup


def handle_describe_groups(
    request: messages.DescribeGroupsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeGroupsResponse], None],
) -> None:
    """Describe each group as it is now."""
    groups: list[Described] = []
    for group_ids in groups_by_partition(request.groups, context.broker.groups):
        try:
            shard = context.broker.groups.shard_of_any_group(group_ids[0])
        except ApiError as error:
            groups += [Described(error.error_code, None, group_id) for group_id in group_ids]
        else:
            groups += [_describe(group_id, shard, context) for group_id in group_ids]
    if context.api_version >= OPERATIONS_VERSION and request.include_authorized_operations:
        for described in groups:
            if not described.error_code:
                described.authorized_operations = ALL_GROUP_OPERATIONS
    respond(messages.DescribeGroupsResponse(groups=groups))


def _describe(group_id: str, shard: GroupShard, context: RequestContext) -> Described:
    group = shard.groups.get(group_id)
    described = None if group is None else group.describe()
    if described is not None:
        return described
    if context.api_version < NOT_FOUND_VERSION:
        return Described(group_id=group_id, group_state=DEAD)
    text = (
        f"Group {group_id} not found."
        if group is None
        else f"Group {group_id} is not a classic group."
    )
    return Described(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id, DEAD)
