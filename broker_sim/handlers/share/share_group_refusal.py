"""Whether the cluster has share groups and the client may use one, as each of their APIs asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.handlers.support.group_protocols import has_share_groups
from broker_sim.metadata.acl import ResourceType

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.acl import AclOperation


def share_group_refusal(context: RequestContext, operation: AclOperation, group_id: str) -> ErrorCode:
    """Return why the client may not do that with a share group, NONE if it may."""
    if not has_share_groups(context):
        return ErrorCode.UNSUPPORTED_VERSION
    return authorization_error(context, operation, ResourceType.GROUP, group_id)
