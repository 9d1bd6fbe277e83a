"""OffsetFetch (key 9), versions 1-10; mirrors `KafkaApis.handleOffsetFetchRequest`.

Behaviour:
* shows what is committed: offsets that the in-sync replicas do not have yet stay unseen
* with `require_stable` the newest offsets are taken, and the answer waits until they are committed;
  partitions of which a transaction has an offset that is not over have UNSTABLE_OFFSET_COMMIT
* a group or partition without an offset has the offset -1 and no error

Version notes: 2 has an error for the group and can ask for all partitions, 7 require_stable, 8 several
groups, 9 members of KIP-848, 10 names topics by id: an offset of a topic that was deleted is not shown
for the new one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.offset_metadata import fetch_group, is_of_topic
from broker_sim.handlers.support.injected_error import injected_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.group.offsets import CommittedOffset
    from broker_sim.group.shard import GroupShard
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_offset_fetch"]

GROUP_ERROR_VERSION: Final = 2
GROUPS_VERSION: Final = 8
TOPIC_ID_VERSION: Final = 10
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
EVERYTHING: Final = 2**63 - 1
"""A high watermark that shows what is not committed yet."""

AskedGroup = messages.OffsetFetchRequest.OffsetFetchRequestGroup
AskedTopic = messages.OffsetFetchRequest.OffsetFetchRequestTopics
Group = messages.OffsetFetchResponse.OffsetFetchResponseGroup
Topic = messages.OffsetFetchResponse.OffsetFetchResponseTopics
Partition = messages.OffsetFetchResponse.OffsetFetchResponsePartitions


def handle_offset_fetch(
    request: messages.OffsetFetchRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetFetchResponse], None],
) -> None:
    """Answer once every group of the request has its answer."""
    asked = _asked_groups(request, context.api_version)
    answers: list[Group | None] = [None] * len(asked)

    def take(index: int, answer: Group) -> None:
        answers[index] = answer
        groups = [group for group in answers if group is not None]
        if len(groups) == len(answers):
            respond(_response(groups, context.api_version))

    if not asked:
        respond(messages.OffsetFetchResponse())
    for index, group in enumerate(asked):
        _fetch(group, request.require_stable, context, partial(take, index))


def _asked_groups(request: messages.OffsetFetchRequest, api_version: int) -> list[AskedGroup]:
    if api_version >= GROUPS_VERSION:
        return request.groups
    if request.topics is None:
        return [AskedGroup(group_id=request.group_id, topics=None)]
    topics = [
        AskedTopic(name=topic.name, partition_indexes=topic.partition_indexes)
        for topic in request.topics
    ]
    return [AskedGroup(group_id=request.group_id, topics=topics)]


def _fetch(
    asked: AskedGroup,
    require_stable: bool,
    context: RequestContext,
    on_answer: Callable[[Group], None],
) -> None:
    try:
        shard = context.broker.groups.shard_of_any_group(asked.group_id)
        has_offsets = fetch_group(shard, asked.group_id, asked.member_id, asked.member_epoch)
    except ApiError as error:
        on_answer(_failed(asked, error.error_code, context.api_version))
        return
    view = _View(shard, asked.group_id, require_stable)
    if asked.topics is None:
        offsets = shard.offsets.committed_of(asked.group_id, view.high_watermark)
        topics = _all_topics(offsets if has_offsets else (), view, context)
    else:
        topics = [_named_topic(topic, view, context) for topic in asked.topics]
        # As in Kafka, topics of unknown ids come last.
        topics.sort(key=lambda topic: not topic.name and context.api_version >= TOPIC_ID_VERSION)
    answer = Group(group_id=asked.group_id, topics=topics)
    if not require_stable:
        on_answer(answer)
        return

    def done(error_code: ErrorCode) -> None:
        if error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            error_code = ErrorCode.NOT_COORDINATOR
        failed = error_code and _failed(asked, error_code, context.api_version)
        on_answer(failed or answer)

    shard.write((), done)


class _View:
    """What a request may see of a group's offsets."""

    def __init__(self, shard: GroupShard, group_id: str, require_stable: bool) -> None:
        self._shard = shard
        self._group_id = group_id
        self._require_stable = require_stable
        self.high_watermark = EVERYTHING if require_stable else shard.high_watermark

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        return self._shard.offsets.get_committed(
            self._group_id, topic, partition, self.high_watermark
        )

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Whether a transaction that is not over may yet change the offset, and this matters."""
        return self._require_stable and self._shard.transactional_offsets.contains(
            self._group_id, topic, partition
        )


def _all_topics(
    offsets: Iterable[tuple[str, int, CommittedOffset]], view: _View, context: RequestContext
) -> list[Topic]:
    """Return all offsets by topic; by id, without those of topics that are gone."""
    by_id = context.api_version >= TOPIC_ID_VERSION
    known = context.broker.image.topics
    topics: dict[str, Topic] = {}
    for name, partition, committed in offsets:
        topic_id = known[name].topic_id if name in known else NO_TOPIC_ID
        if by_id and topic_id == NO_TOPIC_ID:
            continue
        topic = topics.setdefault(name, Topic(name=name, topic_id=topic_id))
        topic.partitions.append(
            _no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if view.is_unstable(name, partition)
            else _partition(partition, committed)
        )
    return list(topics.values())


def _named_topic(asked: AskedTopic, view: _View, context: RequestContext) -> Topic:
    by_id = context.api_version >= TOPIC_ID_VERSION
    name = context.broker.image.topic_names.get(asked.topic_id, "") if by_id else asked.name
    topic = Topic(name=name, topic_id=asked.topic_id)
    for index in asked.partition_indexes:
        error_code = injected_error(context, name, index)
        if not error_code and by_id and not name:
            error_code = ErrorCode.UNKNOWN_TOPIC_ID
        if not error_code and view.is_unstable(name, index):
            error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
        if error_code:
            topic.partitions.append(_no_offset(index, error_code))
            continue
        committed = view.get(name, index)
        if committed is None or not is_of_topic(committed, asked.topic_id):
            topic.partitions.append(_no_offset(index, ErrorCode.NONE))
        else:
            topic.partitions.append(_partition(index, committed))
    return topic


def _partition(index: int, committed: CommittedOffset) -> Partition:
    return Partition(index, committed.offset, committed.leader_epoch, committed.metadata)


def _no_offset(index: int, error_code: ErrorCode) -> Partition:
    return Partition(index, NO_OFFSET, NO_EPOCH, "", error_code)


def _failed(asked: AskedGroup, error_code: ErrorCode, api_version: int) -> Group:
    """Return the answer of a group that failed; version 1 has errors for partitions only."""
    if api_version >= GROUP_ERROR_VERSION:
        return Group(group_id=asked.group_id, error_code=error_code)
    topics = [
        Topic(
            name=topic.name,
            partitions=[_no_offset(index, error_code) for index in topic.partition_indexes],
        )
        for topic in asked.topics or ()
    ]
    return Group(group_id=asked.group_id, topics=topics)


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
