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

from broker_sim.errors import ErrorCode
from broker_sim.group.offset_metadata import OffsetCommit, OffsetToCommit
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.injected_error import denied_or_injected_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_offset_commit"]

TOPIC_ID_VERSION: Final = 10
Topic = messages.OffsetCommitResponse.OffsetCommitResponseTopic
Partition = messages.OffsetCommitResponse.OffsetCommitResponsePartition


def handle_offset_commit(
    request: messages.OffsetCommitRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetCommitResponse], None],
) -> None:
    """Commit what is valid, and answer for every partition."""
    answer = _Answer(by_id=context.api_version >= TOPIC_ID_VERSION)
    offsets = _sort_out(request, context, answer)
    if not offsets:
        respond(answer.response())
        return

    def done(errors: Sequence[ErrorCode]) -> None:
        answer.add_all(offsets, errors)
        respond(answer.response())

    def fail_all(error: ApiError) -> None:
        done([error.error_code] * len(offsets))

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


class _Answer:
    """Collects the partitions of a response by topic, in the order in which they come."""

    def __init__(self, *, by_id: bool) -> None:
        self._by_id = by_id
        self._topics: dict[str | bytes, Topic] = {}

    def add(self, name: str, topic_id: bytes, partition: int, error_code: ErrorCode) -> None:
        topic = self._topics.setdefault(
            topic_id if self._by_id else name, Topic(name=name, topic_id=topic_id)
        )
        topic.partitions.append(Partition(partition, error_code))

    def add_all(self, offsets: Sequence[OffsetToCommit], errors: Sequence[ErrorCode]) -> None:
        for offset, error_code in zip(offsets, errors, strict=True):
            self.add(offset.topic, offset.topic_id, offset.partition, error_code)

    def response(self) -> messages.OffsetCommitResponse:
        return messages.OffsetCommitResponse(topics=list(self._topics.values()))


def _sort_out(
    request: messages.OffsetCommitRequest, context: RequestContext, answer: _Answer
) -> list[OffsetToCommit]:
    """Return the offsets that may be committed; the others are answered already."""
    image = context.broker.image
    by_id = context.api_version >= TOPIC_ID_VERSION
    names = [
        image.topic_names.get(asked.topic_id, "") if by_id else asked.name
        for asked in request.topics
    ]
    read = AclOperation.READ
    denial = authorization_error(context, read, ResourceType.GROUP, request.group_id)
    denied = unauthorized_names(
        context, read, ResourceType.TOPIC, () if denial else filter(None, names)
    )
    offsets: list[OffsetToCommit] = []
    for name, asked in zip(names, request.topics, strict=True):
        topic = image.topics.get(name)
        topic_id = asked.topic_id if by_id else NO_TOPIC_ID if topic is None else topic.topic_id
        for partition in asked.partitions:
            index = partition.partition_index
            error_code = denial or denied_or_injected_error(context, name, index, denied)
            if not error_code and topic is None:
                error_code = (
                    ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            if not error_code and topic is not None and topic.partition(index) is None:
                error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error_code:
                answer.add(name, topic_id, index, error_code)
            else:
                offset = OffsetToCommit(
                    name,
                    topic_id,
                    index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                )
                offsets.append(offset)
    return offsets
