"""What a member of a share group must tell before it is served; mirrors the first lines of `KafkaApis`' methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.share.coordinator import SHARE_VERSION_FEATURE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicIdPartition

__all__ = ["denied_topics", "member_error"]

LONGEST_MEMBER_ID: Final = 36
"""The characters of a UUID."""


def member_error(context: RequestContext, group_id: str | None, member_id: str | None) -> ErrorCode:
    """Return why the member is not served, NONE if it is."""
    if not context.broker.image.features.get(SHARE_VERSION_FEATURE):
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None:
        return ErrorCode.INVALID_REQUEST
    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, group_id)
    if denial:
        return denial
    is_valid = member_id is not None and 0 < len(member_id) <= LONGEST_MEMBER_ID
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


def denied_topics(
    context: RequestContext, partitions: Iterable[TopicIdPartition]
) -> AbstractSet[str]:
    """Return those topics that the member may not read."""
    names = (partition.topic for partition in partitions)
    return unauthorized_names(
        context, AclOperation.READ, ResourceType.TOPIC, (name for name in names if name)
    )
