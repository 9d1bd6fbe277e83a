"""Records which share partitions of a group have state; mirrors that part of `GroupMetadataManager`.

The share coordinator stores the states. Each change has two records here: one before the call to the share
coordinator, and one after its response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.coordinator.result import Result
from broker_sim.errors import NOT_HOSTED_TEXT, ApiError, ErrorCode
from broker_sim.group.share import records
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.group.share.state_partitions import NO_STATE, StatePartitions, named
from broker_sim.group.share.state_partitions import TopicStatePartitions as Partitions
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.share.share_groups import ShareGroups
    from broker_sim.group.share.state_partitions import Numbers

NO_OFFSETS_TEXT = "There is no offset information to delete."
Altered = messages.AlterShareGroupOffsetsResponse
DeletedTopic = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


class AlteredOffsets(NamedTuple):
    """The response of AlterShareGroupOffsets, and the states to initialize before it is sent."""

    response: messages.AlterShareGroupOffsetsResponse
    state_epoch: int
    start_offsets: Mapping[bytes, Mapping[int, int]]
    """New start offsets by topic id and partition."""


class DeletedOffsets(NamedTuple):
    """The rejected topics of DeleteShareGroupOffsets, and the share partitions of the others."""

    rejected_topics: Sequence[messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    numbers: Numbers
    """Share partitions whose state must be deleted."""


class ShareStates:
    """The share partitions with state, of all groups in a shard."""

    def __init__(self, broker: BrokerContext, groups: GroupTimeline, shares: ShareGroups) -> None:
        """Use the share groups among `groups`, which are all groups of the shard."""
        self._broker = broker
        self._groups = groups
        self._shares = shares

    def _now_ms(self) -> int:
        return self._broker.clock.wall_clock_ms()

    def _record(self, group_id: str, state: StatePartitions) -> GroupRecord:
        return records.state_partitions(group_id, state, self._broker.image())

    def _state_of(self, group_id: str) -> StatePartitions | None:
        """Return the state partitions of a share group, None if it has none or does not exist."""
        group = self._groups.get(group_id)
        return group.state_partitions if isinstance(group, ShareGroup) else None

    def initialized_partitions(self, group_id: str) -> Numbers:
        """Return the initialized share partitions of a group."""
        state = self._state_of(group_id) or NO_STATE
        return {topic_id: topic.partitions for topic_id, topic in state.initialized.items()}

    # -- initialization -------------------------------------------------------------------------

    def initialized(self, group_id: str, numbers: Numbers) -> Result[None]:
        """Record that these share partitions are initialized."""
        if not numbers or not isinstance(self._groups.get(group_id), ShareGroup):
            return Result()
        state = self._state_of(group_id) or NO_STATE
        topics = named(numbers, self._broker.image(), self._now_ms())
        return Result(records=[self._record(group_id, state.with_initialized(topics))])

    def not_initialized(self, group_id: str, numbers: Numbers) -> Result[None]:
        """Record that initializing these share partitions failed, so that the next heartbeat retries."""
        state = self._state_of(group_id)
        if state is None or not state.initializing or not numbers:
            return Result()
        return Result(records=[self._record(group_id, state.without_initializing(numbers))])

    # -- AlterShareGroupOffsets -----------------------------------------------------------------

    def alter_offsets(self, request: messages.AlterShareGroupOffsetsRequest) -> Result[AlteredOffsets]:
        """Record that share partitions are being initialized at these offsets.

        Raises `ApiError`: GROUP_ID_NOT_FOUND (a group of another type), NON_EMPTY_GROUP.
        """
        group, _ = self._shares.find_or_create(request.group_id, creates=True)
        group.validate_delete_group()
        image, now_ms = self._broker.image(), self._now_ms()
        response = Altered()
        offsets: dict[bytes, dict[int, int]] = {}
        initializing = {}
        for requested_topic in request.topics:
            topic = image.topics.get(requested_topic.topic_name)
            topic_response = Altered.AlterShareGroupOffsetsResponseTopic(requested_topic.topic_name)
            count = 0
            if topic is not None:
                topic_response.topic_id, count = topic.topic_id, len(topic.partitions)
            for partition in requested_topic.partitions:
                number = partition.partition_index
                row = Altered.AlterShareGroupOffsetsResponsePartition(number)
                if topic is not None and number < count:
                    offsets.setdefault(topic.topic_id, {})[number] = partition.start_offset
                else:
                    row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    row.error_message = NOT_HOSTED_TEXT
                topic_response.partitions.append(row)
            if topic is not None:
                # As in Kafka, the last entry of a topic that is named twice is recorded.
                named_numbers = (partition.partition_index for partition in requested_topic.partitions)
                numbers = frozenset(number for number in named_numbers if number < count)
                initializing[topic.topic_id] = Partitions(topic.name, numbers, now_ms)
            response.responses.append(topic_response)
        state_records = []
        if initializing:
            state = group.known_state.with_initializing(initializing)
            state_records.append(self._record(group.group_id, state))
        return Result(AlteredOffsets(response, group.group_epoch, offsets), state_records)

    # -- DeleteShareGroupOffsets ----------------------------------------------------------------

    def begin_deletion_of_offsets(self, request: messages.DeleteShareGroupOffsetsRequest) -> Result[DeletedOffsets]:
        """Record that the states of topics are being deleted.

        Raises `ApiError`: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group = self._shares.find(request.group_id)
        group.validate_delete_group()
        state = group.state_partitions
        if state is None:
            return Result(DeletedOffsets((), {}))
        image = self._broker.image()
        rejected_topics = []
        numbers: dict[bytes, Collection[int]] = {}
        for requested_topic in request.topics:
            topic = image.topics.get(requested_topic.topic_name)
            code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED_TEXT
            if topic is not None and topic.topic_id in numbers:
                # The second entry of a topic finds it being deleted.
                numbers[topic.topic_id] = range(len(topic.partitions))
            elif topic is not None and topic.topic_id in state.initialized:
                numbers[topic.topic_id] = sorted(state.initialized[topic.topic_id].partitions)
            elif topic is not None and topic.topic_id in state.deleting:
                numbers[topic.topic_id] = range(len(topic.partitions))
            else:
                text = text if topic is None else NO_OFFSETS_TEXT
                rejected_topics.append(DeletedTopic(requested_topic.topic_name, error_code=code, error_message=text))
        record = self._record(group.group_id, state.with_deleting(numbers.keys()))
        return Result(DeletedOffsets(rejected_topics, numbers), [record])

    def offsets_deleted(
        self, group_id: str, topic_ids: Collection[bytes]
    ) -> Result[list[messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]]:
        """Record that the states of these topics are deleted; the response has a row for each topic."""
        state = self._state_of(group_id)
        if state is None:
            return Result([])
        names = self._broker.image().topic_names
        rows = [DeletedTopic(names.get(topic_id, ""), topic_id, error_message=None) for topic_id in topic_ids]
        return Result(rows, [self._record(group_id, state.with_deleted(topic_ids))])

    # -- deleted groups and topics --------------------------------------------------------------

    def begin_deletion_of_groups(self, group_ids: Iterable[str]) -> Result[dict[str, ErrorCode | Numbers]]:
        """Record that all states of share groups are being deleted.

        The response has an error (NON_EMPTY_GROUP) or the share partitions to delete for each share group; it
        leaves out groups of other types and without state.
        """
        outcomes: dict[str, ErrorCode | Numbers] = {}
        state_records = []
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if not isinstance(group, ShareGroup):
                continue
            try:
                group.validate_delete_group()
            except ApiError as error:
                outcomes[group_id] = error.error_code
                continue
            if group.state_partitions is None:
                continue
            topics = group.state_partitions.to_delete(self._broker.image())
            deleting = StatePartitions(deleting=frozenset(topics))
            state_records.append(self._record(group_id, deleting))
            if topics:
                outcomes[group_id] = {topic_id: sorted(topic.partitions) for topic_id, topic in topics.items()}
        return Result(outcomes, state_records)

    def topics_deleted(self, topic_ids: Collection[bytes]) -> Result[None]:
        """Remove deleted topics; the share coordinator deletes their states itself."""
        state_records = []
        for group in self._groups.values():
            if isinstance(group, ShareGroup) and group.state_partitions is not None:
                remaining_state = group.state_partitions.without_topics(topic_ids)
                if remaining_state is not group.state_partitions:
                    state_records.append(self._record(group.group_id, remaining_state))
        return Result(records=state_records)
