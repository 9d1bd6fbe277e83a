"""DescribeGroups (key 15), versions 0-6; mirrors `KafkaApis.handleDescribeGroupsRequest`.

Behaviour:
* describes classic groups; one that does not exist, or uses the consumer protocol, is `Dead`
* a stable group shows its protocol and what the members subscribed to and were assigned
* the groups are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 3 has authorized operations, 6 GROUP_ID_NOT_FOUND for a group that does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import authorized_operations, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

OPERATIONS_VERSION: Final = 3


def handle_describe_groups(
    request: messages.DescribeGroupsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeGroupsResponse], None],
) -> None:
    """Describe each group as it is now."""
    describe, group = AclOperation.DESCRIBE, ResourceType.GROUP
    denied = unauthorized_names(context, describe, group, request.groups)
    group_ids = [group_id for group_id in request.groups if group_id not in denied]
    groups = context.broker.groups.describe_groups(group_ids, context.api_version)
    if context.api_version >= OPERATIONS_VERSION and request.include_authorized_operations:
        for described in groups:
            if not described.error_code:
                described.authorized_operations = authorized_operations(context, group, described.group_id)
    refused = [
        messages.DescribeGroupsResponse.DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
        for group_id in request.groups
        if group_id in denied
    ]
    respond(messages.DescribeGroupsResponse(groups=refused + groups))
