"""ConsumerGroupDescribe (key 69), versions 0-1; mirrors `KafkaApis.handleConsumerGroupDescribe`.

Behaviour:
* groups of the consumer protocol only: any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* what a member has to give up counts as its own until it has done so
* the groups are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 1 tells which protocol a member uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorized_operations import ALL_GROUP_OPERATIONS
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

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
    if PROTOCOL not in context.broker.config.group_coordinator_rebalance_protocols:
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [Described(code, group_id=group_id) for group_id in request.group_ids]
    else:
        groups = context.broker.groups.consumer_group_describe(request.group_ids)
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    respond(messages.ConsumerGroupDescribeResponse(groups=groups))
