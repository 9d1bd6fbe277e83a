"""Parsing and validation of ConsumerGroupHeartbeat.

Mirrors `throwIfConsumerGroupHeartbeatRequestIsInvalid` of `GroupCoordinatorService`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import NO_TIMEOUT
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from broker_sim.group.modern.static_members import known_member
from broker_sim.group.request_checks import check_text, invalid_request

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.protocol import messages


MEMBER_ID_VERSION: Final = 1
"""First version of ConsumerGroupHeartbeat in which members create their own ids."""


def owned_partitions(request: messages.ConsumerGroupHeartbeatRequest) -> dict[bytes, Sequence[int]] | None:
    """Return the partitions that the member reports as owned; None if it does not report any."""
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: topic.partitions for topic in request.topic_partitions}


def is_full(request: messages.ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the request has all fields, as after a lost response: the response then has them too."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    has_topics = names is not None or regex is not None
    is_timed = request.rebalance_timeout_ms != NO_TIMEOUT
    return is_timed and has_topics and request.topic_partitions is not None


def check_heartbeat(
    request: messages.ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """Raise `ApiError` INVALID_REQUEST or UNSUPPORTED_ASSIGNOR if the request is invalid."""
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVE_GROUP_EPOCH:
        check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.instance_id, "InstanceId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    if epoch == 0:
        if request.rebalance_timeout_ms == NO_TIMEOUT:
            raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise invalid_request("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise invalid_request(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEAVE_GROUP_STATIC_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif epoch < LEAVE_GROUP_STATIC_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def owns_only_assigned(member: ConsumerMember, owned: Mapping[bytes, Sequence[int]] | None) -> bool:
    """Return whether the member reports its partitions, and all of them are assigned to it."""
    assigned = member.assigned
    return owned is not None and all(
        topic_id in assigned and all(number in assigned[topic_id] for number in numbers)
        for topic_id, numbers in owned.items()
    )


def leaving_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the leaving member; an administrator may name a static member by instance id only.

    Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None or member_id:
        return known_member(group, member_id, instance_id)
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member
