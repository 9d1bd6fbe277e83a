"""TxnOffsetCommit (key 28), versions 0-6; mirrors `KafkaApis.handleTxnOffsetCommitRequest`.

Behaviour:
* the offsets are pending until the transaction's marker commits or drops them
* first the transaction coordinator verifies that the group's partition is in the transaction, unless the
  partition already has offsets of the transaction
* partitions that do not exist fail alone; if there are no others, no coordinator is called
* answered once the in-sync replicas have the offsets; after `offsets.commit.timeout.ms` with
  COORDINATOR_NOT_AVAILABLE, but the offsets stay written

Version notes: before 2 COORDINATOR_NOT_AVAILABLE replaces COORDINATOR_LOAD_IN_PROGRESS, 3 has the member,
4 has TRANSACTION_ABORTABLE, 5 adds the group's partition to the transaction (KIP-890), 6 identifies topics by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.offsets import OffsetCommit
from broker_sim.handlers.error_table import error_of_version
from broker_sim.handlers.groups.offset_commit import check_offsets, topics_of_commit
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ApiError, ErrorCode
    from broker_sim.handlers.context import RequestContext

TOPIC_ID_VERSION: Final = 6
Topic = messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
Partition = messages.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def handle_txn_offset_commit(
    request: messages.TxnOffsetCommitRequest,
    context: RequestContext,
    respond: Callable[[messages.TxnOffsetCommitResponse], None],
) -> None:
    """Write the valid offsets into the transaction, and answer for every partition."""
    denial = authorization_error(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ) or authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    by_id = context.api_version >= TOPIC_ID_VERSION
    offsets, refused = check_offsets(topics_of_commit(request.topics, context, by_id=by_id), context, denial)

    api, version = context.api_key, context.api_version

    def done(errors: Sequence[ErrorCode]) -> None:
        topics = by_topic(
            ((offset.topic, offset.topic_id), Partition(offset.partition, error_of_version(api, version, error_code)))
            for offset, error_code in [*refused, *zip(offsets, errors, strict=True)]
        )
        respond(
            messages.TxnOffsetCommitResponse(
                topics=[Topic(name, topic_id, partitions) for (name, topic_id), partitions in topics.items()]
            )
        )

    def fail_all(error: ApiError) -> None:
        done([error.error_code] * len(offsets))

    if not offsets:
        done(())
        return
    commit = OffsetCommit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.api_version,
        offsets,
    )
    context.broker.groups.txn_offset_commit(
        commit, request.transactional_id, request.producer_id, request.producer_epoch, done, fail_all
    )
