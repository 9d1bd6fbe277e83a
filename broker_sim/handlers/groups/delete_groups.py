"""DeleteGroups (key 42), versions 0-3; mirrors `KafkaApis.handleDeleteGroupsRequest`.

Behaviour:
* a group without members is deleted with its offsets; others fail with NON_EMPTY_GROUP
* the groups of one partition of `__consumer_offsets` are deleted in one write
* the results are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 3 has an error message, which only a Kafka plugin sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext


def handle_delete_groups(
    request: messages.DeleteGroupsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteGroupsResponse], None],
) -> None:
    """Delete the groups without members, and answer once all deletions are committed."""
    names = dict.fromkeys(request.groups_names)
    denied = unauthorized_names(context, AclOperation.DELETE, ResourceType.GROUP, names)
    refused = [
        messages.DeleteGroupsResponse.DeletableGroupResult(name, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for name in names
        if name in denied
    ]
    context.broker.groups.delete_groups(
        [name for name in names if name not in denied],
        lambda results: respond(messages.DeleteGroupsResponse(results=results + refused)),
    )
