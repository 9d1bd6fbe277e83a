"""Writes the markers that end transactions; mirrors `KafkaApis.handleWriteTxnMarkersRequest`.

A marker is one control batch in each partition of its transaction, appended with acks=all: it is
answered when the in-sync replicas have it, or after `request.timeout.ms`. In `__consumer_offsets` the
group coordinator appends it, because it commits or drops the transaction's offsets; the timeout is then
`offsets.commit.timeout.ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.coordinator.storage import TransactionMarker
from broker_sim.errors import ErrorCode
from broker_sim.log import AppendOrigin
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition, by_topic
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.group.service import GroupCoordinatorService
    from broker_sim.replica import ProducePartitionStatus, ReplicaManager

    Request = messages.WriteTxnMarkersRequest
    Response = messages.WriteTxnMarkersResponse
    Marker = messages.WriteTxnMarkersRequest.WritableTxnMarker

PartitionResult = messages.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class TxnMarkerWriter:
    """Appends the markers of coordinators to the partitions of one broker."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        groups: Callable[[], GroupCoordinatorService],
        clock: Clock,
        request_timeout_ms: int,
    ) -> None:
        self._replica_manager = replica_manager
        self._groups = groups
        self._clock = clock
        self._timeout_ms = request_timeout_ms

    def write(self, request: Request, respond: Callable[[Response], object]) -> None:
        """Append all markers; respond when each partition has its result.

        The error is UNKNOWN_TOPIC_OR_PARTITION for a partition that this broker does not host, otherwise that
        of the append.
        """
        answers = _Answers(request, respond)
        for marker in request.markers:
            if marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_PRODUCER_EPOCH:
                answers.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
                return
            self._write(marker, answers)
        answers.complete_one()

    def _write(self, message: Marker, answers: _Answers) -> None:
        marker = TransactionMarker(
            message.producer_id,
            message.producer_epoch,
            message.coordinator_epoch,
            message.transaction_result,
            message.transaction_version,
        )
        hosted: list[TopicPartition] = []
        for key in _partitions_of(message):
            if key not in self._replica_manager.partitions:
                answers.put(marker.producer_id, key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif key.topic == GROUP_METADATA_TOPIC:
                self._complete_offsets(marker, key, answers)
            else:
                hosted.append(key)
        if not hosted:
            return

        def on_appended(statuses: Mapping[TopicPartition, ProducePartitionStatus]) -> None:
            for key, status in statuses.items():
                answers.put(marker.producer_id, key, status.error_code)
            answers.complete_one()

        answers.pending += 1
        self._replica_manager.append_records(
            dict.fromkeys(hosted, marker.batch(self._clock.wall_clock_ms())),
            on_appended,
            timeout_ms=self._timeout_ms,
            required_acks=ACKS_ALL,
            origin=AppendOrigin.BUILT_HERE,
            transaction_version=marker.transaction_version,
        )

    def _complete_offsets(self, marker: TransactionMarker, key: TopicPartition, answers: _Answers) -> None:
        def on_done(error_code: ErrorCode) -> None:
            answers.put(marker.producer_id, key, error_code)
            answers.complete_one()

        answers.pending += 1
        self._groups().complete_transaction(key.partition, marker, on_done)


def _partitions_of(marker: Marker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in marker.topics for number in topic.partition_indexes]


class _Answers:
    """Collects the results of one request, by producer and partition."""

    def __init__(self, request: Request, respond: Callable[[Response], object]) -> None:
        self.pending = 1
        """Number of appends without a result, plus one until all appends have begun."""
        self._request = request
        self._respond: Callable[[Response], object] | None = respond
        self._results: dict[int, dict[TopicPartition, ErrorCode]] = {}

    def put(self, producer_id: int, key: TopicPartition, error_code: ErrorCode) -> None:
        """Set the result of one partition."""
        self._results.setdefault(producer_id, {})[key] = error_code

    def fail(self, error_code: ErrorCode) -> None:
        """Answer the whole request with an error, although some markers may have been appended."""
        for marker in self._request.markers:
            for key in _partitions_of(marker):
                self.put(marker.producer_id, key, error_code)
        self._send()

    def complete_one(self) -> None:
        """Count one pending append as done; respond after the last one."""
        self.pending -= 1
        if not self.pending:
            self._send()

    def _send(self) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            respond(_response(self._results))


def _response(results: Mapping[int, Mapping[TopicPartition, ErrorCode]]) -> Response:
    answer = messages.WriteTxnMarkersResponse()
    for producer_id, errors in results.items():
        topics = by_topic(
            (topic, PartitionResult(number, error_code)) for (topic, number), error_code in errors.items()
        )
        answer.markers.append(
            messages.WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id,
                [messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(*topic) for topic in topics.items()],
            )
        )
    return answer
