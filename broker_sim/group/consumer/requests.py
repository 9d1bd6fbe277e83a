"""What a heartbeat asks for, and what is checked before a group is looked at.

Mirrors `throwIfConsumerGroupHeartbeatRequestIsInvalid` of `GroupCoordinatorService`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer.member import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from broker_sim.group.group import NO_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker_sim.group.group_client import GroupClient
    from broker_sim.protocol import messages

__all__ = ["MemberRequest", "check_heartbeat"]

MEMBER_ID_VERSION: Final = 1
"""The version of ConsumerGroupHeartbeat from which on members make their ids themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRequest:
    """A heartbeat of a member that stays or joins; None stands for what has not changed."""

    group_id: str
    member_id: str
    member_epoch: int
    client: GroupClient
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int | None
    topic_names: Sequence[str] | None
    topic_regex: str | None
    server_assignor: str | None
    owned: Mapping[bytes, Sequence[int]] | None

    @classmethod
    def of(
        cls, request: messages.ConsumerGroupHeartbeatRequest, client: GroupClient
    ) -> MemberRequest:
        """Return what the message says."""
        timeout_ms = request.rebalance_timeout_ms
        owned: dict[bytes, Sequence[int]] | None = None
        if request.topic_partitions is not None:
            owned = {topic.topic_id: topic.partitions for topic in request.topic_partitions}
        return cls(
            group_id=request.group_id,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            client=client,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=None if timeout_ms == NO_TIMEOUT else timeout_ms,
            topic_names=request.subscribed_topic_names,
            topic_regex=request.subscribed_topic_regex,
            server_assignor=request.server_assignor,
            owned=owned,
        )

    @property
    def joins(self) -> bool:
        """Whether the member joins, or begins anew."""
        return self.member_epoch == 0

    @property
    def is_full(self) -> bool:
        """Whether it says all, as after an answer that was lost: then it is told all, too."""
        has_topics = self.topic_names is not None or self.topic_regex is not None
        return self.rebalance_timeout_ms is not None and has_topics and self.owned is not None


def check_heartbeat(
    request: messages.ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """Raise `ApiError` INVALID_REQUEST or UNSUPPORTED_ASSIGNOR for a request that makes no sense."""
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVE_GROUP_EPOCH:
        _check_text(request.member_id, "MemberId can't be empty.")
    _check_text(request.group_id, "GroupId can't be empty.")
    _check_text(request.instance_id, "InstanceId can't be empty.")
    _check_text(request.rack_id, "RackId can't be empty.")
    if epoch == 0:
        if request.rebalance_timeout_ms == NO_TIMEOUT:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEAVE_GROUP_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_GROUP_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _check_text(text: str | None, message: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(message)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
