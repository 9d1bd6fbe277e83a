"""TxnOffsetCommit (key 28), versions 0-5; mirrors `KafkaApis.handleTxnOffsetCommitRequest`.

Behaviour:
* the offsets are pending until the transaction's marker commits or drops them
* before the group is looked at, the transaction's coordinator is asked whether the group's partition is
  in the transaction, unless the partition has offsets of it already
* partitions that do not exist fail by themselves; without any other nobody is asked
* the answer waits until the in-sync replicas have the offsets, at most `offsets.commit.timeout.ms`:
  then COORDINATOR_NOT_AVAILABLE, and the offsets stay written

Version notes: before 2 COORDINATOR_LOAD_IN_PROGRESS is told as COORDINATOR_NOT_AVAILABLE, 3 names the
member, 4 knows TRANSACTION_ABORTABLE, 5 adds the group's partition to the transaction (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.transactions import VerifiedTransaction
from broker_sim.errors import ErrorCode
from broker_sim.group.offset_metadata import OffsetCommit, OffsetToCommit
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.injected_error import denied_or_injected_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext
    from broker_sim.log import VerificationGuard

__all__ = ["handle_txn_offset_commit"]

LOAD_IN_PROGRESS_VERSION: Final = 2
ABORTABLE_VERSION: Final = 4
Topic = messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
Partition = messages.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def handle_txn_offset_commit(
    request: messages.TxnOffsetCommitRequest,
    context: RequestContext,
    respond: Callable[[messages.TxnOffsetCommitResponse], None],
) -> None:
    """Write what is valid into the transaction, and answer for every partition."""
    answer = _Answer(context.api_version)
    offsets = _sort_out(request, context, answer)
    if not offsets:
        respond(answer.response())
        return

    def done(errors: Sequence[ErrorCode]) -> None:
        for offset, error_code in zip(offsets, errors, strict=True):
            answer.add(offset.topic, offset.partition, error_code)
        respond(answer.response())

    def fail_all(error_code: ErrorCode) -> None:
        done([error_code] * len(offsets))

    def fail(error: ApiError) -> None:
        fail_all(error.error_code)

    groups = context.broker.groups
    commit = OffsetCommit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        context.api_version,
        offsets,
    )

    def verified(error_code: ErrorCode, guard: VerificationGuard | None) -> None:
        if error_code:
            fail_all(_known_in_version(error_code, context.api_version))
            return
        transaction = VerifiedTransaction(request.producer_id, request.producer_epoch, guard)
        groups.txn_offset_commit(commit, transaction, done, fail)

    groups.verify_transaction(
        request.group_id,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        context.api_version,
        verified,
    )


def _known_in_version(error_code: ErrorCode, api_version: int) -> ErrorCode:
    if error_code is ErrorCode.TRANSACTION_ABORTABLE and api_version < ABORTABLE_VERSION:
        return ErrorCode.INVALID_TXN_STATE
    return error_code


class _Answer:
    """Collects the partitions of a response by topic, in the order in which they come."""

    def __init__(self, api_version: int) -> None:
        self._api_version = api_version
        self._topics: dict[str, Topic] = {}

    def add(self, name: str, partition: int, error_code: ErrorCode) -> None:
        if (
            error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            and self._api_version < LOAD_IN_PROGRESS_VERSION
        ):
            error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topic = self._topics.setdefault(name, Topic(name=name))
        topic.partitions.append(Partition(partition, error_code))

    def response(self) -> messages.TxnOffsetCommitResponse:
        return messages.TxnOffsetCommitResponse(topics=list(self._topics.values()))


def _sort_out(
    request: messages.TxnOffsetCommitRequest, context: RequestContext, answer: _Answer
) -> list[OffsetToCommit]:
    """Return the offsets that may be committed; the others are answered already."""
    denial = authorization_error(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ) or authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    names = () if denial else (topic.name for topic in request.topics)
    denied = unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, names)
    offsets: list[OffsetToCommit] = []
    for asked in request.topics:
        topic = context.broker.image.topics.get(asked.name)
        for partition in asked.partitions:
            index = partition.partition_index
            error_code = denial or denied_or_injected_error(context, asked.name, index, denied)
            if topic is None or topic.partition(index) is None:
                error_code = error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error_code or topic is None:
                answer.add(asked.name, index, error_code)
                continue
            offsets.append(
                OffsetToCommit(
                    asked.name,
                    topic.topic_id,
                    index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                )
            )
    return offsets
