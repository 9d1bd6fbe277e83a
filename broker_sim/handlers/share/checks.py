"""Checks of requests to share groups; mirrors the first lines of `KafkaApis`' methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.java_text import java_length
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.groups import has_share_groups
from broker_sim.metadata.acl import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicIdPartition

LONGEST_MEMBER_ID: Final = 36
"""Longest member id, in characters: that of a UUID."""


def is_member_id(text: str | None) -> bool:
    """Whether the text is a valid member id; mirrors `KafkaApis.isMemberIdValid`."""
    return text is not None and 0 < java_length(text) <= LONGEST_MEMBER_ID


def group_error(context: RequestContext, operation: AclOperation, group_id: str) -> ErrorCode:
    """Return the error for a client that may not perform the operation on a share group, else NONE."""
    if not has_share_groups(context):
        return ErrorCode.UNSUPPORTED_VERSION
    return authorization_error(context, operation, ResourceType.GROUP, group_id)


def member_error(context: RequestContext, group_id: str | None, member_id: str | None) -> ErrorCode:
    """Return the error of a member that is not served, else NONE."""
    if not has_share_groups(context):
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None:
        return ErrorCode.INVALID_REQUEST
    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, group_id)
    if denial:
        return denial
    return ErrorCode.NONE if is_member_id(member_id) else ErrorCode.INVALID_REQUEST


def denied_topics(context: RequestContext, partitions: Collection[TopicIdPartition]) -> AbstractSet[str]:
    """Return the topics that the member may not read.

    With an authorizer, raises ApiError UNKNOWN_SERVER_ERROR for a topic that does not exist: as in Kafka, a topic
    without a name cannot be authorized.
    """
    if context.broker.authorizer is None:
        return frozenset()
    names = [partition.topic for partition in partitions if partition.topic is not None]
    if len(names) < len(partitions):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, names)
