"""All partitions of one broker: append, fetch, delete records; mirrors `kafka.server.ReplicaManager`.

What cannot be answered at once becomes a delayed operation in one of the purgatories, watched under
its partitions; appends, follower fetches and changes of role try those operations again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import AppendOrigin, RecordValidationError
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.replica.delayed_delete_records import (
    DelayedDeleteRecords,
    DeleteRecordsPartitionStatus,
)
from broker_sim.replica.delayed_fetch import DelayedFetch
from broker_sim.replica.delayed_produce import DelayedProduce, ProducePartitionStatus
from broker_sim.replica.fetch_params import FetchParams, FetchPartition, FetchPartitionData
from broker_sim.replica.partition import ACKS_ALL, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.purgatories import Purgatories
    from broker_sim.runtime.action_queue import ActionQueue

    FetchRespond = Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]]], None]
    ProduceRespond = Callable[[dict[TopicPartition, ProducePartitionStatus]], None]
    DeleteRecordsRespond = Callable[[dict[TopicPartition, DeleteRecordsPartitionStatus]], None]

__all__ = ["ReplicaManager"]

EXPECTED_APPEND_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
"""Errors that Kafka answers without the log start offset."""


class ReplicaManager:
    """The partitions hosted on a broker and the requests that work on them."""

    def __init__(
        self,
        purgatories: Purgatories,
        action_queue: ActionQueue,
        is_known: Callable[[TopicPartition], bool],
    ) -> None:
        self.purgatories = purgatories
        self.partitions: dict[TopicPartition, Partition] = {}
        self._actions = action_queue
        self._is_known = is_known

    # -- look-up --------------------------------------------------------------------------------

    def get_partition_or_error(self, topic_partition: TopicPartition) -> Partition | ErrorCode:
        """Return the hosted partition; NOT_LEADER_OR_FOLLOWER if it is elsewhere, else unknown."""
        partition = self.partitions.get(topic_partition)
        if partition is not None:
            return partition
        if self._is_known(topic_partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def get_partition(self, topic_partition: TopicPartition) -> Partition:
        """Return the hosted partition, or raise `ApiError` with the reason."""
        partition = self.partitions.get(topic_partition)
        if partition is None:
            error_code = self.get_partition_or_error(topic_partition)
            assert isinstance(error_code, ErrorCode)
            raise ApiError(error_code)
        return partition

    def leader_partitions(self) -> list[Partition]:
        """Return the partitions that this broker leads."""
        return [partition for partition in self.partitions.values() if partition.is_leader]

    # -- produce --------------------------------------------------------------------------------

    def append_records(
        self,
        timeout_ms: int,
        required_acks: int,
        entries: Mapping[TopicPartition, bytes | memoryview],
        respond: ProduceRespond,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        client_id: str | None = None,
    ) -> None:
        """Append to the leaders here and answer as `required_acks` (0, 1, -1) asks.

        With -1 the answer waits for the in-sync replicas or the timeout, unless every partition
        failed at once.
        """
        statuses: dict[TopicPartition, ProducePartitionStatus] = {}
        appended = 0
        for topic_partition, records in entries.items():
            status, hw_increased = self._append_to_local_log(
                topic_partition, records, required_acks, origin
            )
            statuses[topic_partition] = status
            if hw_increased is not None:
                appended += 1
                self._actions.add(
                    partial(self._complete_after_append, topic_partition, hw_increased)
                )
        if required_acks == ACKS_ALL and appended:
            operation = DelayedProduce(timeout_ms, statuses, self, respond, client_id)
            self.purgatories.produce.try_complete_else_watch(operation, list(statuses))
        else:
            respond(statuses)

    def _append_to_local_log(
        self,
        topic_partition: TopicPartition,
        records: bytes | memoryview,
        required_acks: int,
        origin: AppendOrigin,
    ) -> tuple[ProducePartitionStatus, bool | None]:
        """Return the outcome, and whether the high watermark moved: None for a failure."""
        try:
            partition = self.get_partition(topic_partition)
            info, hw_increased = partition.append_records_to_leader(records, required_acks, origin)
        except ApiError as error:
            return self._failed_append(topic_partition, error), None
        status = ProducePartitionStatus(
            ErrorCode.NONE,
            required_offset=info.last_offset + 1,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )
        return status, hw_increased

    def _failed_append(
        self, topic_partition: TopicPartition, error: ApiError
    ) -> ProducePartitionStatus:
        """Tell an append's failure as Kafka does: with more details the less expected it is."""
        status = ProducePartitionStatus(error.error_code)
        partition = self.partitions.get(topic_partition)
        if error.error_code not in EXPECTED_APPEND_ERRORS and partition and partition.is_leader:
            status.log_start_offset = partition.log.log_start_offset
        if isinstance(error, RecordValidationError):
            status.error_message = str(error)
            status.record_errors = error.record_errors
        return status

    def _complete_after_append(self, topic_partition: TopicPartition, hw_increased: bool) -> None:
        """Try what an append can complete: fetches, and with a new high watermark everything."""
        if hw_increased:
            self.purgatories.check_and_complete_all(topic_partition)
        else:
            self.purgatories.fetch.check_and_complete(topic_partition)

    def complete_delayed_requests(self, topic_partition: TopicPartition) -> None:
        """Try everything that waits for the partition, once the running handler has returned."""
        self._actions.add(partial(self.purgatories.check_and_complete_all, topic_partition))

    # -- fetch ----------------------------------------------------------------------------------

    def fetch_messages(
        self,
        params: FetchParams,
        infos: Sequence[tuple[TopicPartition, FetchPartition]],
        respond: FetchRespond,
    ) -> None:
        """Read for a consumer or follower; answers now, or when `DelayedFetch` says so.

        Now: no wait asked for, no partitions, `min_bytes` there, an error, or a diverging epoch.
        """
        results = self.read_from_log(params, infos, update_fetch_state=True)
        if params.is_from_follower:
            # As in Kafka, who waits for this follower's acknowledgement is answered before the
            # follower's fetch is parked.
            self._actions.try_complete_actions()
        bytes_readable = 0
        must_tell = False
        for _, data in results:
            bytes_readable += data.size_bytes
            if data.error_code or data.diverging_epoch is not None:
                must_tell = True
        if must_tell or params.max_wait_ms <= 0 or not infos or bytes_readable >= params.min_bytes:
            respond(results)
            return
        operation = DelayedFetch(
            params,
            infos,
            self,
            lambda: respond(self.read_from_log(params, infos, update_fetch_state=False)),
        )
        self.purgatories.fetch.try_complete_else_watch(operation, [key for key, _ in infos])

    def read_from_log(
        self,
        params: FetchParams,
        infos: Sequence[tuple[TopicPartition, FetchPartition]],
        *,
        update_fetch_state: bool,
    ) -> list[tuple[TopicPartition, FetchPartitionData]]:
        """Read all partitions in turn within `max_bytes`; the first data comes whole (KIP-74)."""
        limit_bytes = params.max_bytes
        min_one_message = True
        results: list[tuple[TopicPartition, FetchPartitionData]] = []
        for topic_partition, fetch in infos:
            data = self._read(
                topic_partition, params, fetch, limit_bytes, min_one_message, update_fetch_state
            )
            if data.size_bytes:
                min_one_message = False
            limit_bytes = max(0, limit_bytes - data.size_bytes)
            results.append((topic_partition, data))
        return results

    def _read(
        self,
        topic_partition: TopicPartition,
        params: FetchParams,
        fetch: FetchPartition,
        limit_bytes: int,
        min_one_message: bool,
        update_fetch_state: bool,
    ) -> FetchPartitionData:
        try:
            partition = self.get_partition(topic_partition)
            if fetch.topic_id not in (partition.topic_id, NO_TOPIC_ID):
                return FetchPartitionData.failed(ErrorCode.INCONSISTENT_TOPIC_ID)
            return partition.fetch_records(
                params,
                fetch,
                min(fetch.max_bytes, limit_bytes),
                min_one_message,
                update_fetch_state,
            )
        except ApiError as error:
            return FetchPartitionData.failed(error.error_code)

    # -- delete records -------------------------------------------------------------------------

    def delete_records(
        self,
        timeout_ms: int,
        offsets: Mapping[TopicPartition, int],
        respond: DeleteRecordsRespond,
        client_id: str | None = None,
    ) -> None:
        """Move log starts forward; answers once all living replicas did, or at the timeout."""
        statuses: dict[TopicPartition, DeleteRecordsPartitionStatus] = {}
        for topic_partition, offset in offsets.items():
            try:
                partition = self.get_partition(topic_partition)
                requested, low_watermark = partition.delete_records_on_leader(offset)
            except ApiError as error:
                statuses[topic_partition] = DeleteRecordsPartitionStatus(error.error_code)
            else:
                statuses[topic_partition] = DeleteRecordsPartitionStatus(
                    ErrorCode.NONE, requested, low_watermark
                )
        if all(status.is_satisfied for status in statuses.values()):
            respond(statuses)
            return
        operation = DelayedDeleteRecords(timeout_ms, statuses, self, respond, client_id)
        self.purgatories.delete_records.try_complete_else_watch(operation, list(statuses))

    # -- upkeep ---------------------------------------------------------------------------------

    def maybe_shrink_isr(self) -> None:
        """Propose to drop lagging followers; called every half `replica.lag.time.max.ms`."""
        for partition in self.leader_partitions():
            partition.maybe_shrink_isr()

    def checkpoint_high_watermarks(self) -> None:
        """Keep the high watermarks where a killed broker finds them again."""
        for partition in self.partitions.values():
            partition.log.checkpoint_high_watermark()
