"""OffsetCommit (key 8), versions 2-10; mirrors `KafkaApis.handleOffsetCommitRequest`.

Behaviour:
* partitions that do not exist fail alone; if there are no others, the coordinator is not called
* answered once the in-sync replicas have the offsets; after `offsets.commit.timeout.ms` with
  COORDINATOR_NOT_AVAILABLE, but the offsets stay written
* a commit without a generation to a group that does not exist creates a simple group

Version notes: 2 to 4 have a retention time, 9 returns GROUP_ID_NOT_FOUND and serves KIP-848, 10 identifies
topics by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.group.offsets import OffsetCommit, OffsetToCommit
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.partition_errors import denied_or_injected_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

    OffsetPartition = (
        messages.OffsetCommitRequest.OffsetCommitRequestPartition
        | messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    )
    RequestTopic = (
        messages.OffsetCommitRequest.OffsetCommitRequestTopic
        | messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    )
    CommitTopic = tuple[str, bytes | None, Sequence[OffsetPartition]]

TOPIC_ID_VERSION: Final = 10
Topic = messages.OffsetCommitResponse.OffsetCommitResponseTopic
Partition = messages.OffsetCommitResponse.OffsetCommitResponsePartition


def handle_offset_commit(
    request: messages.OffsetCommitRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetCommitResponse], None],
) -> None:
    """Commit the valid offsets, and answer for every partition."""
    by_id = context.api_version >= TOPIC_ID_VERSION
    offsets, refused = check_offsets(
        topics_of_commit(request.topics, context, by_id=by_id),
        context,
        authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id),
    )

    def done(errors: Sequence[ErrorCode]) -> None:
        topics = by_topic(
            ((offset.topic, offset.topic_id), Partition(offset.partition, error_code))
            for offset, error_code in [*refused, *zip(offsets, errors, strict=True)]
        )
        respond(
            messages.OffsetCommitResponse(
                topics=[
                    Topic(name=name, topic_id=topic_id, partitions=partitions)
                    for (name, topic_id), partitions in topics.items()
                ]
            )
        )

    def fail_all(error: ApiError) -> None:
        done([error.error_code] * len(offsets))

    if not offsets:
        done(())
        return
    commit = OffsetCommit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.api_version,
        offsets,
        request.retention_time_ms,
    )
    context.broker.groups.offset_commit(commit, done, fail_all)


def topics_of_commit(topics: Iterable[RequestTopic], context: RequestContext, *, by_id: bool) -> list[CommitTopic]:
    """Return name, id and partitions of each topic; the name is empty for an unknown id."""
    topic_names = context.broker.image.topic_names
    return [
        (topic_names.get(topic.topic_id, ""), topic.topic_id, topic.partitions)
        if by_id
        else (topic.name, None, topic.partitions)
        for topic in topics
    ]


def check_offsets(
    topics: Sequence[CommitTopic], context: RequestContext, denial: ErrorCode
) -> tuple[list[OffsetToCommit], list[tuple[OffsetToCommit, ErrorCode]]]:
    """Return the offsets that may be committed, and the others with their errors.

    `denial` is the error of all offsets if the client may not commit for the group, else NONE.
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
