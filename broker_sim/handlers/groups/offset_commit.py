"""OffsetCommit (key 8), versions 2-10; mirrors `KafkaApis.handleOffsetCommitRequest`.

Behaviour:
* partitions that do not exist fail by themselves; without any other the coordinator is not asked
* the answer waits until the in-sync replicas have the offsets, at most `offsets.commit.timeout.ms`:
  then COORDINATOR_NOT_AVAILABLE, and the offsets stay written
* who commits without a generation to a group that does not exist makes a simple group

Version notes: 2 to 4 name a retention, 9 tells GROUP_ID_NOT_FOUND and serves KIP-848, 10 names topics
by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.offsets import OffsetCommit
from broker_sim.handlers.groups.commit_checks import sort_out
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ApiError, ErrorCode
    from broker_sim.handlers.context import RequestContext

TOPIC_ID_VERSION: Final = 10
Topic = messages.OffsetCommitResponse.OffsetCommitResponseTopic
Partition = messages.OffsetCommitResponse.OffsetCommitResponsePartition


def handle_offset_commit(
    request: messages.OffsetCommitRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetCommitResponse], None],
) -> None:
    """Commit what is valid, and answer for every partition."""
    by_id = context.api_version >= TOPIC_ID_VERSION
    topic_names = context.broker.image.topic_names
    offsets, refused = sort_out(
        [
            (topic_names.get(topic.topic_id, ""), topic.topic_id, topic.partitions)
            if by_id
            else (topic.name, None, topic.partitions)
            for topic in request.topics
        ],
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
