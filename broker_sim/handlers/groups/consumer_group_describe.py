"""ConsumerGroupDescribe (key 69), versions 0-1; mirrors `KafkaApis.handleConsumerGroupDescribe`.

Behaviour:
* groups of the consumer protocol only: any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* what a member has to give up counts as its own until it has done so
* the groups are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 1 tells which protocol a member uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.by_partition import groups_by_partition
from broker_sim.handlers.support.authorized_operations import ALL_GROUP_OPERATIONS
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.shard import GroupShard
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_consumer_group_describe"]

PROTOCOL: Final = "consumer"
Described = messages.ConsumerGroupDescribeResponse.DescribedGroup


def handle_consumer_group_describe(
    request: messages.ConsumerGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.ConsumerGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    respond(messages.ConsumerGroupDescribeResponse(groups=_describe_all(request, context)))


def _describe_all(
    request: messages.ConsumerGroupDescribeRequest, context: RequestContext
) -> list[Described]:
    if PROTOCOL not in context.broker.config.group_coordinator_rebalance_protocols:
        return _failed(request.group_ids, ErrorCode.UNSUPPORTED_VERSION)
    described = _failed([g for g in request.group_ids if not g], ErrorCode.INVALID_GROUP_ID)
    named = [group_id for group_id in request.group_ids if group_id]
    coordinator = context.broker.groups
    try:
        by_partition = groups_by_partition(named, coordinator.partition_for)
    except ApiError as error:
        return described + _failed(named, error.error_code)
    for group_ids in by_partition:
        try:
            shard = coordinator.shard(group_ids[0])
        except ApiError as error:
            described += _failed(group_ids, error.error_code)
        else:
            described += [_describe(group_id, shard) for group_id in group_ids]
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return described


def _describe(group_id: str, shard: GroupShard) -> Described:
    try:
        return shard.consumer.describe(group_id)
    except ApiError as error:
        return Described(error.error_code, error.error_message, group_id)


def _failed(group_ids: list[str], error_code: ErrorCode) -> list[Described]:
    return [Described(error_code, group_id=group_id) for group_id in group_ids]
