"""The service of a broker's share groups; mirrors that part of `GroupCoordinatorService`.

The shard has the group, the persister the states of its share partitions. Operations that need both call them
in this order:

    heartbeat        shard, answer, initialize states, shard
    alter offsets    shard, initialize states, answer; shard
    delete offsets   shard, delete states, shard, answer
    delete group     shard, delete states, shard, answer

`on_error` gets an `ApiError` for the client, as in `GroupCoordinatorService`.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from broker_sim.errors import ERROR_TEXTS, ApiError, ErrorCode
from broker_sim.group.by_partition import describe_each
from broker_sim.group.share.described_offsets import (
    DescribedPartitions,
    named_partitions,
    offsets_group,
    partitions_with_lag,
    partitions_with_state,
)
from broker_sim.group.share.persister_calls import (
    errors_by_topic,
    is_refused,
    keys_of,
    partitions_in_order,
    topics_in_order,
)
from broker_sim.group.share.share_groups import check_heartbeat
from broker_sim.protocol import messages
from broker_sim.runtime.combined_calls import call_all
from broker_sim.share.share_state import UNINITIALIZED_EPOCH, UNINITIALIZED_START_OFFSET, SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import Result
    from broker_sim.group.group import GroupClient
    from broker_sim.group.other_brokers import ListLatestOffsets
    from broker_sim.group.shard import GroupShard
    from broker_sim.group.shards import GroupShards
    from broker_sim.group.share.share_groups import HeartbeatAnswer
    from broker_sim.group.share.share_states import AlteredOffsets, DeletedOffsets
    from broker_sim.group.share.state_partitions import Numbers, Topics
    from broker_sim.share.persister.persister import Persister
    from broker_sim.share.share_state import StateOutcome, StateSummary

    OnError = Callable[[ApiError], object]
    OnDeleted = Callable[[messages.DeleteShareGroupOffsetsResponse], object]

R = TypeVar("R")
Described = messages.ShareGroupDescribeResponse.DescribedGroup
DeletedTopic = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


class ShareGroupService:
    """Serves the share groups of this broker. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        shards: GroupShards,
        persister: Callable[[], Persister],
        latest_offsets: ListLatestOffsets,
    ) -> None:
        """Serve the share groups in these shards."""
        self._broker = broker
        self._shards = shards
        self._persister = persister
        self._latest_offsets = latest_offsets

    # -- members --------------------------------------------------------------------------------

    def heartbeat(
        self,
        request: messages.ShareGroupHeartbeatRequest,
        client: GroupClient,
        respond: Callable[[messages.ShareGroupHeartbeatResponse], object],
        on_error: OnError,
    ) -> None:
        """Serve a member's heartbeat; missing states are initialized after the answer."""
        try:
            check_heartbeat(request)
        except ApiError as error:
            on_error(error)
            return
        group_id = request.group_id

        def answer(answer: HeartbeatAnswer) -> None:
            respond(answer.response)
            if answer.to_initialize is not None:
                self._broker.call_later(0, self._initialize, group_id, answer.to_initialize, answer.state_epoch)

        self._shards.write(group_id, lambda shard: shard.share.heartbeat(request, client), answer, on_error)

    def _initialize(self, group_id: str, topics: Topics, state_epoch: int) -> None:
        """Initialize the states of share partitions; they may be assigned once all of them are initialized."""
        numbers = {topic_id: topics[topic_id].partitions for topic_id in topics_in_order(topics)}

        def initialized(outcomes: Mapping[SharePartitionKey, StateOutcome]) -> None:
            if any(outcome.error_code for outcome in outcomes.values()):
                self._write(group_id, lambda shard: shard.share_states.not_initialized(group_id, numbers))
            else:
                self._write_initialized(group_id, numbers)

        call_all(
            keys_of(group_id, numbers),
            lambda key, on_done: self._persister().initialize_state(
                key, state_epoch, UNINITIALIZED_START_OFFSET, on_done
            ),
            initialized,
        )

    def _write_initialized(self, group_id: str, numbers: Numbers) -> None:
        self._write(group_id, lambda shard: shard.share_states.initialized(group_id, numbers))

    def _write(self, group_id: str, decide: Callable[[GroupShard], Result[Any]]) -> None:
        """Write to the shard of a group; no client waits for the result."""
        self._shards.runtime.write(group_id, decide, lambda _: None, lambda _: None)

    def describe(self, group_ids: Sequence[str]) -> list[messages.ShareGroupDescribeResponse.DescribedGroup]:
        """Describe share groups; a group that cannot be described has its error instead."""
        return describe_each(
            group_ids,
            self._shards.runtime.partition_for,
            lambda group_id: self._shards.find(group_id).share.describe(group_id),
            Described,
            ERROR_TEXTS,
        )

    # -- offsets --------------------------------------------------------------------------------

    def describe_offsets(
        self,
        requested: messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
        on_group: Callable[[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup], object],
        on_error: OnError,
    ) -> None:
        """Describe the offsets of a group, for all share partitions with state if no topics are named.

        1. Find the share partitions to describe.
        2. Read the summary of each from its share coordinator.
        3. Get the latest offsets from the leaders, if the lag can be computed.
        4. Answer with a row for each.
        """
        try:
            described = self._described_partitions(requested)
        except ApiError as error:
            on_error(error)
            return
        call_all(
            keys_of(requested.group_id, described.numbers),
            lambda key, on_done: self._persister().read_summary(key, UNINITIALIZED_EPOCH, on_done),
            partial(self._get_latest_offsets, described, on_group),
        )

    def _described_partitions(
        self, requested: messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    ) -> DescribedPartitions:
        """Return the share partitions to describe. Raises ApiError."""
        image, group_id = self._broker.image(), requested.group_id
        if requested.topics is not None:
            return named_partitions(group_id, requested.topics, image)
        shard = self._shards.runtime.find(group_id).shard
        return partitions_with_state(group_id, shard.share_states.initialized_partitions(group_id), image)

    def _get_latest_offsets(
        self,
        described: DescribedPartitions,
        on_group: Callable[[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup], object],
        summaries: Mapping[SharePartitionKey, StateSummary],
    ) -> None:
        """Get the latest offsets from the leaders, and answer."""
        self._latest_offsets(
            partitions_with_lag(described, summaries),
            lambda latest_offsets: on_group(offsets_group(described, summaries, latest_offsets)),
        )

    def alter_offsets(
        self,
        request: messages.AlterShareGroupOffsetsRequest,
        respond: Callable[[messages.AlterShareGroupOffsetsResponse], object],
        on_error: OnError,
    ) -> None:
        """Set the start offsets of share partitions, in a group without members.

        1. Record in the group that their states are being initialized.
        2. Initialize the state of each at its share coordinator.
        3. Record that they are initialized, unless one of them failed, and answer.
        """
        self._shards.write(
            request.group_id,
            lambda shard: shard.share_states.alter_offsets(request),
            partial(self._initialize_altered, request.group_id, respond, on_error),
            on_error,
        )

    def _initialize_altered(
        self,
        group_id: str,
        respond: Callable[[messages.AlterShareGroupOffsetsResponse], object],
        on_error: OnError,
        altered: AlteredOffsets,
    ) -> None:
        numbers = {topic_id: list(offsets) for topic_id, offsets in altered.start_offsets.items()}
        if is_refused(group_id, numbers):
            on_error(_negative_partition(group_id, numbers))
            return
        call_all(
            keys_of(group_id, numbers),
            lambda key, on_done: self._persister().initialize_state(
                key, altered.state_epoch, altered.start_offsets[key.topic_id][key.partition], on_done
            ),
            partial(self._answer_altered, group_id, numbers, respond, altered),
        )

    def _answer_altered(
        self,
        group_id: str,
        numbers: Numbers,
        respond: Callable[[messages.AlterShareGroupOffsetsResponse], object],
        altered: AlteredOffsets,
        outcomes: Mapping[SharePartitionKey, StateOutcome],
    ) -> None:
        if any(outcome.error_code for outcome in outcomes.values()):
            _add_outcomes(altered.response, group_id, outcomes)
        elif numbers:
            self._write_initialized(group_id, numbers)
        respond(altered.response)

    def delete_offsets(
        self, request: messages.DeleteShareGroupOffsetsRequest, respond: OnDeleted, on_error: OnError
    ) -> None:
        """Delete the states of topics, in a group without members.

        1. Record in the group that the states of the topics are being deleted.
        2. Delete the state of each share partition at its share coordinator.
        3. Record in the group which topics no longer have state.
        4. Answer with a row for each topic.
        """
        group_id = request.group_id
        self._shards.write(
            group_id,
            lambda shard: shard.share_states.begin_deletion_of_offsets(request),
            lambda deleted: call_all(
                keys_of(group_id, deleted.numbers),
                self._persister().delete_state,
                partial(self._write_deleted, group_id, deleted, self._broker.image().topic_names, respond, on_error),
            ),
            on_error,
        )

    def _write_deleted(
        self,
        group_id: str,
        deleted: DeletedOffsets,
        names: Mapping[bytes, str],
        respond: OnDeleted,
        on_error: OnError,
        outcomes: Mapping[SharePartitionKey, StateOutcome],
    ) -> None:
        errors = errors_by_topic(outcomes)
        topic_ids = topics_in_order(deleted.numbers)
        rejected_rows = [
            *deleted.rejected_topics,
            *(
                DeletedTopic(names.get(topic_id, ""), topic_id, errors[topic_id], ERROR_TEXTS.get(errors[topic_id]))
                for topic_id in topic_ids
                if topic_id in errors
            ),
        ]

        def answer(rows: Sequence[DeletedTopic]) -> None:
            respond(messages.DeleteShareGroupOffsetsResponse(responses=[*rows, *rejected_rows]))

        deleted_ids = [topic_id for topic_id in topic_ids if topic_id not in errors]
        if not deleted_ids:
            answer([])
            return
        self._shards.write(
            group_id, lambda shard: shard.share_states.offsets_deleted(group_id, deleted_ids), answer, on_error
        )

    # -- deleted groups -------------------------------------------------------------------------

    def delete_states(
        self, group_ids: Sequence[str], on_errors: Callable[[dict[str, ErrorCode]], object], on_error: OnError
    ) -> None:
        """Delete all states of the share groups among these groups, which must be in one shard.

        1. Record in each group that its states are being deleted.
        2. Delete the state of each share partition at its share coordinator.
        3. Call `on_errors` with the groups that cannot be deleted.
        """
        self._shards.runtime.write(
            group_ids[0],
            lambda shard: shard.share_states.begin_deletion_of_groups(group_ids),
            partial(self._delete_states_of_groups, on_errors),
            on_error,
        )

    def _delete_states_of_groups(
        self,
        on_errors: Callable[[dict[str, ErrorCode]], object],
        outcomes_by_group: Mapping[str, ErrorCode | Numbers],
    ) -> None:
        errors: dict[str, ErrorCode] = {}
        numbers_by_group: dict[str, Numbers] = {}
        for group_id, outcome in outcomes_by_group.items():
            if isinstance(outcome, ErrorCode):
                errors[group_id] = outcome
            elif not is_refused(group_id, outcome):
                numbers_by_group[group_id] = outcome
            elif any(outcome.values()):
                # As in Kafka, errors are per partition, so there is none for topics without partitions.
                errors[group_id] = ErrorCode.UNKNOWN_SERVER_ERROR
        call_all(
            chain.from_iterable(keys_of(*each) for each in numbers_by_group.items()),
            self._persister().delete_state,
            lambda outcomes: on_errors({**errors, **_errors_by_group(numbers_by_group, outcomes)}),
        )


def _add_outcomes(
    response: messages.AlterShareGroupOffsetsResponse,
    group_id: str,
    outcomes: Mapping[SharePartitionKey, StateOutcome],
) -> None:
    """Set the share coordinators' errors in rows without an error."""
    for topic in response.responses:
        for row in topic.partitions:
            outcome = outcomes.get(SharePartitionKey(group_id, topic.topic_id, row.partition_index))
            if not row.error_code and outcome is not None:
                row.error_code = outcome.error_code
                row.error_message = outcome.error_message


def _errors_by_group(
    numbers_by_group: Mapping[str, Numbers], outcomes: Mapping[SharePartitionKey, StateOutcome]
) -> dict[str, ErrorCode]:
    """Return the error of each group whose states could not be deleted; as in Kafka, that of its last topic."""
    errors: dict[str, ErrorCode] = {}
    for group_id, numbers in numbers_by_group.items():
        topic_errors = errors_by_topic({key: outcomes[key] for key in keys_of(group_id, numbers)})
        topic_ids = [topic_id for topic_id in topics_in_order(numbers) if topic_id in topic_errors]
        if topic_ids:
            errors[group_id] = topic_errors[topic_ids[-1]]
    return errors


def _negative_partition(group_id: str, numbers: Numbers) -> ApiError:
    """Return the error of Kafka's persister for negative partitions, which names the first one."""
    key = next(
        SharePartitionKey(group_id, topic_id, number)
        for topic_id in topics_in_order(numbers)
        for number in partitions_in_order(numbers[topic_id])
        if number < 0
    )
    names = " ".join(key.coordinator_key().rsplit(":", 2))
    text = f"Initialize share group parameters has invalid partitionId - {names}"
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
