"""Which member a request is of, and whether it may say what it says.

Mirrors `getOrMaybeSubscribeDynamicConsumerGroupMember`, its static sibling and the checks that
they call in `GroupMetadataManager`.
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.consumer.member import LEAVE_GROUP_STATIC_EPOCH, ConsumerMember
from broker_sim.group.modern.assignment import NO_PARTITIONS

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.modern.assignment import Epochs
    from broker_sim.group.records import GroupRecord


def new_member_id(rng: random.Random) -> str:
    """Return an id as Kafka makes them: a random UUID in base 64, without a dash in front."""
    while True:
        number = rng.getrandbits(128)
        text = base64.urlsafe_b64encode(uuid.UUID(int=number, version=4).bytes)[:22].decode()
        if not text.startswith("-"):
            return text


def check_capacity(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """Raise `ApiError` GROUP_MAX_SIZE_REACHED if somebody new does not fit in."""
    if len(group.members) >= max_size and (not member_id or member_id not in group.members):
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def find_or_make_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    written: list[GroupRecord],
    *,
    joins: bool,
    member_epoch: int | None = None,
    owned: Mapping[bytes, Sequence[int]] | None = None,
) -> ConsumerMember:
    """Return the member, a new one if it joins; `member_epoch` is None for the classic protocol.

    A static member that comes back takes the place of the one that left; the records of that are added
    to `written`. Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID,
    FENCED_INSTANCE_ID.
    """
    if not joins:
        member = known_member(group, member_id, instance_id)
        _check_epoch(member, member_epoch, owned)
        return member
    existing = group.static_member(instance_id)
    if existing is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    speaks_new_protocol = member_epoch is not None and not existing.uses_classic_protocol
    if speaks_new_protocol and existing.member_epoch != LEAVE_GROUP_STATIC_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because "
            f"the instance id is owned by {existing.member_id} member.",
        )
    member = replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    target = group.targets.get(existing.member_id, NO_PARTITIONS)
    written += records.member_tombstones(group_id, existing.member_id)
    written.append(records.member_metadata(group_id, member))
    written.append(records.target_assignment(group_id, member_id, target))
    written.append(records.current_assignment(group_id, member))
    return member


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member. Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def _check_epoch(member: ConsumerMember, received: int | None, owned: Mapping[bytes, Sequence[int]] | None) -> None:
    """Raise `ApiError` FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The epoch before is right too if the member says that it owns nothing but what it was given:
    then the answer with its new epoch was lost.
    """
    known = member.member_epoch
    if received is None or received in {0, known}:
        return
    if received > known:
        compared = "greater"
    elif received != member.previous_member_epoch or not _is_subset(owned, member.assigned):
        compared = "smaller"
    else:
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({received}) than the one known by "
        f"the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _is_subset(owned: Mapping[bytes, Sequence[int]] | None, assigned: Epochs) -> bool:
    return owned is not None and all(
        topic_id in assigned and all(number in assigned[topic_id] for number in numbers)
        for topic_id, numbers in owned.items()
    )


def leaving_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member that leaves; an administrator names a static one by its instance id only.

    Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None or member_id:
        return known_member(group, member_id, instance_id)
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member
