"""Who a request about a group comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.group_client import GroupClient

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext

__all__ = ["group_client"]


def group_client(context: RequestContext) -> GroupClient:
    """Return the client as DescribeGroups shows it: its host as Java writes an address."""
    return GroupClient(context.client_id or "", f"/{context.connection.ip}", context.api_version)
