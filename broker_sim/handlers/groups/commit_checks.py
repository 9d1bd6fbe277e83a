"""Which offsets of a commit may be committed, in a transaction or outside of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.group.offsets import OffsetToCommit
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.handlers.support.injected_error import denied_or_injected_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

    AskedPartition = (
        messages.OffsetCommitRequest.OffsetCommitRequestPartition
        | messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    )


def sort_out(
    topics: Sequence[tuple[str, bytes | None, Sequence[AskedPartition]]], context: RequestContext, denial: ErrorCode
) -> tuple[list[OffsetToCommit], list[tuple[OffsetToCommit, ErrorCode]]]:
    """Return the offsets that may be committed, and the others with their errors.

    A topic has its name, its id if the client has named it by that, and partitions. `denial` is the
    error of all of them for a client that may not commit for the group.
    """
    image = context.broker.image
    names = (name for name, topic_id, _ in topics if name or topic_id is None)
    denied = unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, () if denial else names)
    valid: list[OffsetToCommit] = []
    refused: list[tuple[OffsetToCommit, ErrorCode]] = []
    for name, topic_id, partitions in topics:
        topic = image.topics.get(name)
        for partition in partitions:
            index = partition.partition_index
            offset = OffsetToCommit(
                name,
                topic_id or (NO_TOPIC_ID if topic is None else topic.topic_id),
                index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata,
            )
            error_code = denial or denied_or_injected_error(context, name, index, denied)
            if not error_code and (topic is None or topic.partition(index) is None):
                error_code = (
                    ErrorCode.UNKNOWN_TOPIC_ID
                    if topic is None and topic_id is not None
                    else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            if error_code:
                refused.append((offset, error_code))
            else:
                valid.append(offset)
    return valid, refused
