"""OffsetFetch (key 9), versions 1-10; mirrors `KafkaApis.handleOffsetFetchRequest`.

Behaviour:
* returns committed offsets only, not those that the in-sync replicas do not have yet
* with `require_stable` it returns the newest offsets once they are committed; partitions with an offset
  in an open transaction have UNSTABLE_OFFSET_COMMIT
* a group or partition without an offset has the offset -1 and no error

Version notes: 2 has an error for the group and can request all partitions, 7 require_stable, 8 several
groups, 9 members of KIP-848, 10 identifies topics by id: an offset of a deleted topic is not returned for
a new topic of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.group.offset_fetch import Group, OffsetQuery, RequestedGroup, RequestedTopic, Topic, no_offset
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.partition_errors import denied_or_injected_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages
from broker_sim.runtime.combined_calls import call_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

GROUP_ERROR_VERSION: Final = 2
GROUPS_VERSION: Final = 8
TOPIC_ID_VERSION: Final = 10


def handle_offset_fetch(
    request: messages.OffsetFetchRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetFetchResponse], None],
) -> None:
    """Return the offsets of each group, once all groups are done."""
    groups = _requested_groups(request, context.api_version)

    def fetch(number: int, on_answer: Callable[[Group], object]) -> None:
        _fetch(groups[number], request.require_stable, context, on_answer)

    def answer(answers: dict[int, Group]) -> None:
        respond(_response(list(answers.values()), context.api_version))

    call_all(range(len(groups)), fetch, answer)


def _requested_groups(request: messages.OffsetFetchRequest, api_version: int) -> list[RequestedGroup]:
    if api_version >= GROUPS_VERSION:
        return request.groups
    if request.topics is None:
        return [RequestedGroup(group_id=request.group_id, topics=None)]
    topics = [RequestedTopic(name=topic.name, partition_indexes=topic.partition_indexes) for topic in request.topics]
    return [RequestedGroup(group_id=request.group_id, topics=topics)]


def _fetch(
    requested: RequestedGroup, require_stable: bool, context: RequestContext, on_answer: Callable[[Group], object]
) -> None:
    def fail(error: ApiError) -> None:
        error_code = error.error_code
        if error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            error_code = ErrorCode.NOT_COORDINATOR
        on_answer(_failed(requested, error_code, context.api_version))

    describe = AclOperation.DESCRIBE
    denial = authorization_error(context, describe, ResourceType.GROUP, requested.group_id)
    if denial:
        on_answer(_failed(requested, denial, context.api_version))
        return
    by_id = context.api_version >= TOPIC_ID_VERSION
    topic_names = context.broker.image.topic_names
    names = [topic_names.get(topic.topic_id, "") if by_id else topic.name for topic in requested.topics or ()]
    denied = _hidden(context, filter(None, names))

    def error_of(topic: str, partition: int) -> ErrorCode:
        return denied_or_injected_error(context, topic, partition, denied)

    def show(answer: Group) -> None:
        """Leave out topics that are not in the request and that the client may not describe."""
        if requested.topics is None:
            hidden = _hidden(context, (topic.name for topic in answer.topics))
            answer.topics = [topic for topic in answer.topics if topic.name not in hidden]
        on_answer(answer)

    query = OffsetQuery(requested, require_stable, by_id, error_of)
    context.broker.groups.offset_fetch(query, show, fail)


def _hidden(context: RequestContext, names: Iterable[str]) -> AbstractSet[str]:
    """Return the topics whose offsets the client may not see."""
    return unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)


def _failed(requested: RequestedGroup, error_code: ErrorCode, api_version: int) -> Group:
    """Return the response of a failed group; version 1 has errors for partitions only."""
    if api_version >= GROUP_ERROR_VERSION:
        return Group(group_id=requested.group_id, error_code=error_code)
    topics = [
        Topic(name=topic.name, partitions=[no_offset(index, error_code) for index in topic.partition_indexes])
        for topic in requested.topics or ()
    ]
    return Group(group_id=requested.group_id, topics=topics)


def _response(groups: list[Group], api_version: int) -> messages.OffsetFetchResponse:
    response = messages.OffsetFetchResponse
    if api_version >= GROUPS_VERSION:
        return response(groups=groups)
    (group,) = groups
    topics = [
        response.OffsetFetchResponseTopic(
            topic.name,
            [
                response.OffsetFetchResponsePartition(
                    partition.partition_index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.metadata,
                    partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return response(topics=topics, error_code=group.error_code)
