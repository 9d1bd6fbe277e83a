"""Who a request about a group comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.group import GroupClient
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext


def group_client(context: RequestContext) -> GroupClient:
    """Return the client as DescribeGroups shows it: its host as Java writes an address."""

    def hidden_topics(names: Iterable[str]) -> AbstractSet[str]:
        return unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)

    return GroupClient(context.client_id or "", f"/{context.connection.ip}", context.api_version, hidden_topics)
