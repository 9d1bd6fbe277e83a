"""The share partitions and response rows of DescribeShareGroupOffsets for one group.

Mirrors `describeShareGroupOffsets`, `describeShareGroupAllOffsets` and `computeShareGroupLagAndBuildResponse` of
`GroupCoordinatorService`. In between, the service queries persister and leaders (`ShareGroupService.describe_offsets`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ERROR_TEXTS, ApiError, ErrorCode
from broker_sim.group.share.persister_calls import is_refused, partitions_in_order, topics_in_order
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.share.share_state import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker_sim.group.other_brokers import LatestOffset
    from broker_sim.metadata import MetadataImage
    from broker_sim.share.share_state import StateSummary

    RequestedTopic = messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
    Summaries = Mapping[SharePartitionKey, StateSummary]

Group = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
Row = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


class DescribedPartitions(NamedTuple):
    """The share partitions to describe."""

    group_id: str
    numbers: Mapping[bytes, Collection[int]]
    """Partitions of existing topics, by topic id."""
    unknown_topics: Sequence[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
    """Response entries of topics that do not exist: no offsets, and no errors."""
    topic_names: Mapping[bytes, str]

    def topic_partition(self, key: SharePartitionKey) -> TopicPartition:
        """Return the partition of a share partition."""
        return TopicPartition(self.topic_names[key.topic_id], key.partition)


def partitions_with_state(
    group_id: str, initialized: Mapping[bytes, Collection[int]], image: MetadataImage
) -> DescribedPartitions:
    """Return all share partitions with state, of existing topics."""
    names = image.topic_names
    numbers = {topic_id: sorted(partitions) for topic_id, partitions in initialized.items() if topic_id in names}
    return DescribedPartitions(group_id, numbers, (), names)


def named_partitions(group_id: str, topics: Sequence[RequestedTopic], image: MetadataImage) -> DescribedPartitions:
    """Return the share partitions named in a request.

    Raises ApiError UNKNOWN_SERVER_ERROR if Kafka's persister would reject the request.
    """
    numbers: dict[bytes, list[int]] = {}
    unknown_topics: list[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = []
    for requested_topic in topics:
        topic = image.topics.get(requested_topic.topic_name)
        if topic is None:
            rows = [Row(number, UNINITIALIZED_START_OFFSET) for number in requested_topic.partitions]
            unknown_topics.append(Topic(requested_topic.topic_name, partitions=rows))
        elif is_refused(group_id, {topic.topic_id: requested_topic.partitions}):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, ERROR_TEXTS[ErrorCode.UNKNOWN_SERVER_ERROR])
        else:
            numbers.setdefault(topic.topic_id, []).extend(requested_topic.partitions)
    return DescribedPartitions(group_id, numbers, unknown_topics, image.topic_names)


def partitions_with_lag(described: DescribedPartitions, summaries: Summaries) -> list[TopicPartition]:
    """Return the partitions whose lag can be computed from latest offsets."""
    return [described.topic_partition(key) for key, summary in summaries.items() if has_lag(summary)]


def offsets_group(
    described: DescribedPartitions, summaries: Summaries, latest_offsets: Mapping[TopicPartition, LatestOffset]
) -> messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup:
    """Return the response for the group, in the order of Kafka's hash maps, with unknown topics last."""
    topics: list[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = []
    for topic_id in topics_in_order(described.numbers):
        keys = [
            SharePartitionKey(described.group_id, topic_id, number)
            for number in partitions_in_order(described.numbers[topic_id])
        ]
        rows = [
            offsets_row(summaries[key], key.partition, latest_offsets.get(described.topic_partition(key)))
            for key in keys
        ]
        topics.append(Topic(described.topic_names[topic_id], topic_id, rows))
    return Group(described.group_id, [*topics, *described.unknown_topics])


def has_lag(summary: StateSummary) -> bool:
    """Whether the lag can be computed: start offset and count of completed records are known."""
    return (
        not summary.error_code
        and summary.start_offset != UNINITIALIZED_START_OFFSET
        and summary.delivery_complete_count != UNINITIALIZED_DELIVERY_COMPLETE_COUNT
    )


def offsets_row(
    summary: StateSummary, number: int, latest: LatestOffset | None
) -> messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition:
    """Return the row of a partition; if its state cannot be read, it has no offset and no error."""
    if latest is not None and latest.error_code:
        text = ERROR_TEXTS.get(latest.error_code)
        return Row(number, error_code=latest.error_code, error_message=text)
    if summary.error_code:
        return Row(number, UNINITIALIZED_START_OFFSET)
    row = Row(number, summary.start_offset, summary.leader_epoch)
    if latest is not None and has_lag(summary):
        row.lag = _wrapped(latest.offset - summary.start_offset - summary.delivery_complete_count)
    return row


def _wrapped(number: int) -> int:
    """Wrap the number around like Java's `long`, because any start offset may be set."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
