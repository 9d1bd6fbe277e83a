"""StreamsGroupTopologyDescriptionUpdate (key 93), version 0.

Mirrors `KafkaApis.handleStreamsGroupTopologyDescriptionUpdate`.

Behaviour:
* a member sends the description of its topology when a heartbeat response requests it; the client must be allowed
  to read the group
* a broker without `group.streams.topology.description.plugin.class` answers UNSUPPORTED_VERSION
* the coordinator checks member and epoch, and stores the description, see
  `broker_sim.group.streams.topology_descriptions`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.handlers.support.groups import has_streams_groups
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

Response = messages.StreamsGroupTopologyDescriptionUpdateResponse


def handle_streams_group_topology_description_update(
    request: messages.StreamsGroupTopologyDescriptionUpdateRequest,
    context: RequestContext,
    respond: Callable[[messages.StreamsGroupTopologyDescriptionUpdateResponse], None],
) -> None:
    """Store the description of a group's topology."""

    def fail(error: ApiError) -> None:
        respond(Response(error_code=error.error_code, error_message=error.error_message))

    if not has_streams_groups(context):
        fail(ApiError(ErrorCode.UNSUPPORTED_VERSION))
        return
    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if denial:
        fail(ApiError(denial))
        return
    context.broker.groups.streams.update_description(request, lambda: respond(Response()), fail)
