"""Whether the cluster has share groups and the client may use one.

Mirrors `KafkaApis.isShareGroupProtocolEnabled` and what each API asks after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import ResourceType
from broker_sim.metadata.feature_names import SHARE_VERSION

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.acl import AclOperation

__all__ = ["has_share_groups", "share_group_refusal"]


def has_share_groups(context: RequestContext) -> bool:
    """Return whether the feature `share.version` is on, without which their APIs are refused."""
    return context.broker.image.features.get(SHARE_VERSION, 0) > 0


def share_group_refusal(
    context: RequestContext, operation: AclOperation, group_id: str
) -> ErrorCode:
    """Return why the client may not do that with a share group, NONE if it may."""
    if not has_share_groups(context):
        return ErrorCode.UNSUPPORTED_VERSION
    return authorization_error(context, operation, ResourceType.GROUP, group_id)
