"""SyncGroup (key 14), versions 0-5; mirrors `KafkaApis.handleSyncGroupRequest`.

Behaviour:
* the leader sends the assignments of all members, and they are written to `__consumer_offsets`
* each member gets its assignment once that is committed; until then the responses are parked, see
  `broker_sim.group.classic.rebalance`

Version notes: 3 has static members; 4 is flexible; 5 must have the protocol and its type, otherwise
INCONSISTENT_GROUP_PROTOCOL comes before all other errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

PROTOCOL_VERSION: Final = 5


def handle_sync_group(
    request: messages.SyncGroupRequest, context: RequestContext, respond: Callable[[messages.SyncGroupResponse], None]
) -> None:
    """Return the member's assignment."""
    if context.api_version >= PROTOCOL_VERSION and (request.protocol_type is None or request.protocol_name is None):
        respond(refuse(request, context, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if denial:
        respond(refuse(request, context, denial))
        return

    def fail(error: ApiError) -> None:
        respond(refuse(request, context, error.error_code))

    context.broker.groups.sync_group(request, respond, fail)
