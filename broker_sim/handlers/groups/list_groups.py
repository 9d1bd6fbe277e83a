"""ListGroups (key 16), versions 0-5; mirrors `KafkaApis.handleListGroupsRequest`.

Behaviour:
* lists the groups that this broker coordinates; clients ask every broker
* COORDINATOR_LOAD_IN_PROGRESS, without any group, while a partition is being loaded
* filters ignore case; states also blanks around them; an unknown state or type matches nothing

Version notes: 4 filters by state, 5 by type.

Deliberate difference: groups are listed by partition and then in the order of their creation; Kafka
lists them in the order of its hash maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_list_groups"]


def handle_list_groups(
    request: messages.ListGroupsRequest,
    context: RequestContext,
    respond: Callable[[messages.ListGroupsResponse], None],
) -> None:
    """List the groups that match the filters."""
    coordinator = context.broker.groups
    if coordinator.is_loading:
        respond(messages.ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    groups = [
        messages.ListGroupsResponse.ListedGroup(
            group.group_id, group.protocol_type, group.state_name, group.group_type
        )
        for shard in coordinator.shards()
        for group in shard.groups.values()
        if (not states or group.state_name.lower() in states)
        and (not types or group.group_type in types)
    ]
    respond(messages.ListGroupsResponse(groups=groups))
