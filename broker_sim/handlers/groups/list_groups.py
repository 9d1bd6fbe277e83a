"""ListGroups (key 16), versions 0-5; mirrors `KafkaApis.handleListGroupsRequest`.

Behaviour:
* lists the groups that this broker coordinates; clients ask every broker
* COORDINATOR_LOAD_IN_PROGRESS without groups while a partition is being loaded
* a client with DESCRIBE on the cluster sees all groups, others see those that they may describe
* filters ignore case, and state filters surrounding blanks; an unknown state or type matches nothing

Version notes: 4 filters by state, 5 by type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.group.java_text import java_trim
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import is_authorized, unauthorized_names
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext


def handle_list_groups(
    request: messages.ListGroupsRequest, context: RequestContext, respond: Callable[[messages.ListGroupsResponse], None]
) -> None:
    """List the groups that match the filters."""
    states = {java_trim(state.lower()) for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    try:
        groups = context.broker.groups.list_groups(states, types)
    except ApiError as error:
        respond(refuse(request, context, error.error_code))
        return
    describe, cluster = AclOperation.DESCRIBE, ResourceType.CLUSTER
    if not is_authorized(context, describe, cluster, CLUSTER_NAME, logs_denial=False):
        names = [group.group_id for group in groups]
        hidden = unauthorized_names(context, describe, ResourceType.GROUP, names, logs_denial=False)
        groups = [group for group in groups if group.group_id not in hidden]
    respond(messages.ListGroupsResponse(groups=groups))
