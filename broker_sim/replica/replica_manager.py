"""The partitions of one broker: append, fetch, delete records; mirrors `kafka.server.ReplicaManager`.

A request that cannot be answered at once becomes a delayed operation in one of the purgatories,
watched under its partitions. Appends, follower fetches and role changes try these operations again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import AppendOrigin
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol.special_values import ACKS_ALL
from broker_sim.replica.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsPartitionStatus
from broker_sim.replica.delayed_fetch import DelayedFetch, is_answered_now
from broker_sim.replica.delayed_produce import DelayedProduce, ProducePartitionStatus
from broker_sim.replica.fetch_params import FetchParams, FetchPartition, FetchPartitionData
from broker_sim.replica.replica_quota import ReplicaQuota, record_response
from broker_sim.replica.replica_selector import RackAwareReplicaSelector, preferred_read_replica, redirected
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from broker_sim.log import Appendable, VerificationGuard
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.follower_session import FollowerSession
    from broker_sim.replica.partition import Partition
    from broker_sim.replica.purgatories import Purgatories
    from broker_sim.runtime.action_queue import ActionQueue

    FetchCallback = Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]]], None]
    ProduceCallback = Callable[[dict[TopicPartition, ProducePartitionStatus]], None]
    DeleteRecordsCallback = Callable[[dict[TopicPartition, DeleteRecordsPartitionStatus]], None]

log = get_logger(__name__)

# Python 3.11 takes 0.1 us to look up an enum member, and every append needs this one.
_NO_ERROR: Final = ErrorCode.NONE


class ReplicaManager:
    """The partitions that a broker hosts, and the requests that read and write them."""

    def __init__(
        self,
        purgatories: Purgatories,
        action_queue: ActionQueue,
        is_known: Callable[[TopicPartition], bool],
        leader_quota: ReplicaQuota,
        *,
        offline_partitions: Container[TopicPartition],
        replica_selector: RackAwareReplicaSelector | None = None,
    ) -> None:
        self.purgatories = purgatories
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline_partitions = offline_partitions
        """Partitions whose log has failed; they are soon removed from `partitions`."""
        self._actions = action_queue
        self._is_known = is_known
        self._replica_selector = replica_selector
        self.leader_quota = leader_quota
        """Quota for what followers outside the ISR fetch from this leader."""

    # -- look-up --------------------------------------------------------------------------------

    def get_partition_or_error(self, topic_partition: TopicPartition) -> Partition | ErrorCode:
        """Return the hosted partition, or the error code if there is none.

        NOT_LEADER_OR_FOLLOWER if other brokers host it, UNKNOWN_TOPIC_OR_PARTITION if none does,
        KAFKA_STORAGE_ERROR if its log is offline here.
        """
        partition = self.partitions.get(topic_partition)
        return self._error_without_partition(topic_partition) if partition is None else partition

    def _error_without_partition(self, topic_partition: TopicPartition) -> ErrorCode:
        if topic_partition in self.offline_partitions:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._is_known(topic_partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def get_partition(self, topic_partition: TopicPartition) -> Partition:
        """Return the hosted partition, or raise `ApiError` with the reason."""
        partition = self.partitions.get(topic_partition)
        if partition is None:
            raise ApiError(self._error_without_partition(topic_partition))
        return partition

    def leader_partitions(self) -> list[Partition]:
        """Return the partitions that this broker leads."""
        return [partition for partition in self.partitions.values() if partition.is_leader]

    # -- produce --------------------------------------------------------------------------------

    def append_records(
        self,
        entries: Mapping[TopicPartition, Appendable],
        response_callback: ProduceCallback,
        *,
        timeout_ms: int,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        client_id: str | None = None,
        transaction_version: int = 0,
        verification_guards: Mapping[TopicPartition, VerificationGuard] | None = None,
    ) -> None:
        """Append to the partitions that this broker leads; respond according to `required_acks` (0, 1, -1).

        With -1 the callback waits for the in-sync replicas or the timeout, unless every append
        failed. Otherwise it is called before this returns.
        """
        statuses: dict[TopicPartition, ProducePartitionStatus] = {}
        appended = 0
        for topic_partition, records in entries.items():
            guard = None if verification_guards is None else verification_guards.get(topic_partition)
            status = self._append_to_local_log(
                topic_partition, records, required_acks, origin, transaction_version, guard
            )
            statuses[topic_partition] = status
            if not status.error_code:
                appended += 1
        if required_acks == ACKS_ALL and appended and self._must_wait(statuses):
            operation = DelayedProduce(timeout_ms, statuses, self.get_partition_or_error, response_callback, client_id)
            self.purgatories.produce.try_complete_else_watch(operation, list(statuses))
        else:
            response_callback(statuses)

    def append_for_coordinator(
        self,
        topic_partition: TopicPartition,
        records: bytes,
        on_appended: Callable[[int], object],
        on_done: Callable[[ErrorCode], object],
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        verification_guard: VerificationGuard | None = None,
    ) -> None:
        """Append a coordinator's records with acks=-1; mirrors `appendForGroup`.

        `on_appended(last_offset)` is called before anyone can see the records, unless the append
        failed; `on_done` once the in-sync replicas have them, with REQUEST_TIMED_OUT, or with the
        error of the append.
        """
        status = self._append_to_local_log(
            topic_partition, records, ACKS_ALL, AppendOrigin.BUILT_HERE, transaction_version, verification_guard
        )
        if status.error_code:
            on_done(status.error_code)
            return
        on_appended(status.required_offset - 1)
        if self._must_wait({topic_partition: status}):
            self.await_replicated(topic_partition, status.required_offset, on_done, timeout_ms=timeout_ms)
        else:
            on_done(_NO_ERROR)

    def _must_wait(self, statuses: Mapping[TopicPartition, ProducePartitionStatus]) -> bool:
        """Whether an acks=all append needs a delayed operation; a partition without followers does not.

        With an observer it always does: observers are called for operations that complete at once, too.
        """
        if self.purgatories.produce.is_observed:
            return True
        for key, status in statuses.items():
            log = self.partitions[key].log if not status.error_code else None
            if log is not None and log.offsets.high_watermark < status.required_offset:
                return True
        return False

    def await_replicated(
        self,
        topic_partition: TopicPartition,
        end_offset: int,
        on_done: Callable[[ErrorCode], object],
        *,
        timeout_ms: int,
    ) -> None:
        """Call `on_done` once the in-sync replicas have all records below `end_offset`, or with an error.

        As in Kafka's coordinators, records below the high watermark count as replicated even if the ISR
        has become too small since.
        """

        def done(statuses: dict[TopicPartition, ProducePartitionStatus]) -> None:
            error_code = statuses[topic_partition].error_code
            if error_code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                error_code = ErrorCode.NONE
            on_done(error_code)

        status = ProducePartitionStatus(ErrorCode.NONE, required_offset=end_offset)
        operation = DelayedProduce(timeout_ms, {topic_partition: status}, self.get_partition_or_error, done)
        self.purgatories.produce.try_complete_else_watch(operation, [topic_partition])

    def _append_to_local_log(
        self,
        topic_partition: TopicPartition,
        records: Appendable,
        required_acks: int,
        origin: AppendOrigin,
        transaction_version: int,
        verification_guard: VerificationGuard | None,
    ) -> ProducePartitionStatus:
        """Append to one partition; operations that wait for it are tried after the current handler returns."""
        try:
            partition = self.get_partition(topic_partition)
            info, hw_increased = partition.append_records_to_leader(
                records, required_acks, origin, transaction_version, verification_guard
            )
        except ApiError as error:
            if error.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                log.warning("records_refused", partition=str(topic_partition), reason=error.error_message)
            return ProducePartitionStatus.refused(error, self.partitions.get(topic_partition))
        if self.purgatories.may_complete(topic_partition, hw_increased):
            self._actions.add(partial(self._complete_after_append, topic_partition, hw_increased))
        return ProducePartitionStatus.appended(info)

    def _complete_after_append(self, topic_partition: TopicPartition, hw_increased: bool) -> None:
        """Try the delayed fetches, or all delayed operations of the partition if its high watermark moved."""
        if hw_increased:
            self._complete_all(topic_partition)
        else:
            self.purgatories.fetch.check_and_complete(topic_partition)

    def complete_delayed_requests(self, topic_partition: TopicPartition) -> None:
        """Try all delayed operations of the partition after the current handler returns."""
        self._actions.add(partial(self._complete_all, topic_partition))

    def _complete_all(self, topic_partition: TopicPartition) -> None:
        partition = self.partitions.get(topic_partition)
        topic_id = NO_TOPIC_ID if partition is None else partition.topic_id
        self.purgatories.check_and_complete_all(topic_partition, topic_id)

    # -- fetch ----------------------------------------------------------------------------------

    def fetch_messages(
        self,
        params: FetchParams,
        infos: Sequence[tuple[TopicPartition, FetchPartition]],
        response_callback: FetchCallback,
    ) -> None:
        """Read for a fetch without a session; the callback is called now or by a `DelayedFetch`.

        It is called now if the fetch has no max wait or no partitions, or if the read gave an error, a
        diverging epoch, a preferred read replica or enough bytes.
        """
        results = self.read_from_log(params, infos, update_fetch_state=True)
        if params.is_from_follower:
            response_callback = partial(self._answer_follower, response_callback)
            self._actions.try_complete_actions()  # before the fetch waits, as below
        if not infos or is_answered_now(params, results):
            response_callback(results)
            return
        operation = DelayedFetch(
            params,
            infos,
            self.partitions,
            self.should_leader_throttle,
            lambda: response_callback(self.read_from_log(params, infos, update_fetch_state=False)),
        )
        self.purgatories.fetch.try_complete_else_watch(operation, [key for key, _ in infos])

    def fetch_for_follower(
        self, params: FetchParams, session: FollowerSession, response_callback: FetchCallback
    ) -> None:
        """Read the unread partitions of a follower's session; the callback is called as by `fetch_messages`."""
        response_callback = partial(self._answer_follower, response_callback)
        session.admit(params)
        unread = list(session.unread.items())
        results = self.read_from_log(params, unread, update_fetch_state=True)
        session.note_read(params, results, self.partitions)
        # As in Kafka the produces that waited for this follower are answered before its fetch waits.
        self._actions.try_complete_actions()
        if not session.keys or is_answered_now(params, results):
            response_callback(session.answer(()))
            return

        def complete() -> None:
            unread = list(session.unread.items())
            results = self.read_from_log(params, unread, update_fetch_state=False)
            response_callback(session.answer(results))

        operation = DelayedFetch(params, session.unread.items(), self.partitions, self.should_leader_throttle, complete)
        self.purgatories.fetch.try_complete_else_watch(operation, session.keys)

    def should_leader_throttle(self, partition: Partition, replica_id: int) -> bool:
        """Whether the replication quota now withholds the partition's records from the follower."""
        quota = self.leader_quota
        return (
            replica_id not in partition.replica_states.isr_state.isr
            and quota.is_throttled(partition.topic_partition)
            and quota.is_quota_exceeded()
        )

    def _answer_follower(
        self, response_callback: FetchCallback, results: Sequence[tuple[TopicPartition, FetchPartitionData]]
    ) -> None:
        record_response(self.leader_quota, results)
        response_callback(results)

    def read_from_log(
        self, params: FetchParams, infos: Sequence[tuple[TopicPartition, FetchPartition]], *, update_fetch_state: bool
    ) -> list[tuple[TopicPartition, FetchPartitionData]]:
        """Read the partitions in order, up to `max_bytes`; the first batch is returned whole (KIP-74)."""
        selector, partitions = self._replica_selector, self.partitions
        limit_bytes = params.max_bytes
        min_one_message = True
        results: list[tuple[TopicPartition, FetchPartitionData]] = []
        for topic_partition, fetch in infos:
            try:
                partition = partitions.get(topic_partition) or self.get_partition(topic_partition)
                if fetch.topic_id not in (partition.topic_id, NO_TOPIC_ID):
                    raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)  # noqa: TRY301 - handled as the errors below
                if (
                    selector is not None
                    and (preferred := preferred_read_replica(selector, partition, params, fetch)) >= 0
                ):
                    log = partition.local_log(fetch.current_leader_epoch, require_leader=False)
                    data = redirected(log, preferred)
                else:
                    data = partition.fetch_records(
                        params,
                        fetch,
                        max_bytes=min(fetch.max_bytes, limit_bytes),
                        min_one_message=min_one_message,
                        update_fetch_state=update_fetch_state,
                    )
                    if (
                        data.size_bytes
                        and params.is_from_follower
                        and self.should_leader_throttle(partition, params.replica_id)
                    ):
                        data.leave_out_records()
            except ApiError as error:
                data = FetchPartitionData.failed(error.error_code)
            if data.size_bytes:
                min_one_message = False
                limit_bytes = max(0, limit_bytes - data.size_bytes)
            results.append((topic_partition, data))
        return results

    # -- delete records -------------------------------------------------------------------------

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        response_callback: DeleteRecordsCallback,
        *,
        timeout_ms: int,
        client_id: str | None = None,
    ) -> None:
        """Move log start offsets forward; respond once all live replicas have done so, or at the timeout."""
        statuses: dict[TopicPartition, DeleteRecordsPartitionStatus] = {}
        for topic_partition, offset in offsets.items():
            try:
                partition = self.get_partition(topic_partition)
                requested, low_watermark = partition.delete_records_on_leader(offset)
            except ApiError as error:
                statuses[topic_partition] = DeleteRecordsPartitionStatus(error.error_code)
            else:
                statuses[topic_partition] = DeleteRecordsPartitionStatus(ErrorCode.NONE, requested, low_watermark)
        if all(status.is_satisfied for status in statuses.values()):
            response_callback(statuses)
            return
        operation = DelayedDeleteRecords(
            timeout_ms, statuses, self.get_partition_or_error, response_callback, client_id
        )
        self.purgatories.delete_records.try_complete_else_watch(operation, list(statuses))

    # -- periodic work --------------------------------------------------------------------------

    def maybe_shrink_isr(self) -> None:
        """Propose to remove lagging followers from the ISR; called every half `replica.lag.time.max.ms`."""
        for partition in self.leader_partitions():
            partition.maybe_shrink_isr()
