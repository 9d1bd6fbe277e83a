"""The state of share partitions; mirrors `KafkaApis.handleInitializeShareGroupStateRequest` and its siblings.

InitializeShareGroupState (key 83), ReadShareGroupState (84) and DeleteShareGroupState (86), version 0;
WriteShareGroupState (85) and ReadShareGroupStateSummary (87), versions 0-1. Brokers send them to each other; clients
with CLUSTER_ACTION may send them, too.

Behaviour:
* for other clients each partition is CLUSTER_AUTHORIZATION_FAILED, with a message
* each share partition is served separately, see `broker_sim.share.coordinator.shard`
* a request without a group, or with a topic without partitions, gets an empty response
* answered once the changes are committed
* a read writes the leader epoch of its reader, which fences earlier leaders

Version notes: 1 has the number of completed records (KIP-1226).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.errors import ERROR_TEXTS
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE

if TYPE_CHECKING:
    from broker_sim.handlers.context import Handler, RequestContext, Respond
    from broker_sim.share.state_apis import StateApi


def _handler(api: StateApi) -> Handler:
    def handle(request: Any, context: RequestContext, respond: Respond) -> None:
        denial = authorization_error(context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        if denial:
            respond(api.failed_response(request, denial, ERROR_TEXTS[denial]))
        else:
            context.broker.serve_share_state(api, request, respond)

    return handle


handle_initialize_share_group_state = _handler(INITIALIZE)
handle_read_share_group_state = _handler(READ)
handle_write_share_group_state = _handler(WRITE)
handle_delete_share_group_state = _handler(DELETE)
handle_read_share_group_state_summary = _handler(SUMMARY)
