"""Which member epochs a member of the consumer protocol may commit and fetch offsets in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.group import CommitPartitionValidator


def stale_epoch(member: ConsumerMember) -> ApiError:
    """Return what refuses a request in another epoch: STALE_MEMBER_EPOCH, or as a classic member knows it."""
    code = ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH
    return ApiError(code, f"The expected member epoch is {member.member_epoch}.")


def older_epoch_check(member: ConsumerMember, epoch: int) -> CommitPartitionValidator:
    """Return a check of a partition: a member that has owned it since may commit in that older epoch."""

    def check(topic: str, topic_id: bytes, partition: int) -> None:  # noqa: ARG001 - others ask for it
        since = member.assignment_epoch(topic_id, partition)
        if since is None or epoch < since:
            raise stale_epoch(member)

    return check
