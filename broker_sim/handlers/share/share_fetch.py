"""ShareFetch (key 78), versions 1-2; mirrors `KafkaApis.handleShareFetchRequest`.

Behaviour:
* acknowledges first, if the request has acknowledgements, then fetches; answered when both are done
* a session (KIP-932) has the partitions; a request has the changes to them, and the final request ends the session
* if the session cache is full, the request is refused at the end of its wait
* a member above its quota gets an empty response, but keeps the acquired records
* a request that renews locks fetches nothing, and its limits must be zero
* the response has partitions with records, errors or acknowledgements, and those new in the session
* as in Kafka, the whole request fails with UNKNOWN_SERVER_ERROR if the response would have a topic that does not
  exist; with an authorizer nothing is acknowledged or fetched then

Version notes: 2 adds record limits (KIP-1206) and the renewal of locks (KIP-1222).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.share.acknowledgements import (
    RENEW_VERSION,
    acknowledge,
    named_partitions,
)
from broker_sim.handlers.share.checks import denied_topics, member_error
from broker_sim.handlers.share.share_fetch_answer import ShareFetchAnswer
from broker_sim.handlers.support.partition_errors import injected_error
from broker_sim.metadata.topic_partition import TopicIdPartition
from broker_sim.protocol import messages
from broker_sim.replica import FetchIsolation, FetchParams
from broker_sim.share.partition.acknowledgement import FailedRequestError
from broker_sim.share.partition.acquisition import AcquireLimits
from broker_sim.share.partition.share_fetch import ShareFetch, rotate
from broker_sim.share.session.share_session import ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.share.partition.acknowledgement import AcknowledgementBatch
    from broker_sim.share.session.share_session import ShareFetchContext

    Respond = Callable[[messages.ShareFetchResponse], None]

RECORD_LIMIT: Final = 1
"""The `share.acquire.mode` in which batches are split."""
ACQUIRE_MODES: Final = (0, RECORD_LIMIT)


def handle_share_fetch(request: messages.ShareFetchRequest, context: RequestContext, respond: Respond) -> None:
    """Acquire records for a member, now or once there are some.

    1. Check the member.
    2. Begin or continue its session.
    3. Find the topics that the member may not read.
    4. Acknowledge.
    5. Fetch the partitions of the session.

    `ShareFetchAnswer` responds when the last two are done.
    """
    error_code = _request_error(request, context)
    if error_code:
        respond(messages.ShareFetchResponse(error_code=error_code))
        return
    partitions = named_partitions(request, context)
    try:
        session = _session(request, context, partitions)
    except ApiError as error:
        _refuse_session(request, context, respond, error.error_code)
        return
    answer = ShareFetchAnswer(request, context, session, respond)
    acknowledged = dict(partitions)
    try:
        denied = denied_topics(context, (*session.partitions, *acknowledged))
        if any(acknowledged.values()):
            acknowledge(request, context, acknowledged, denied, answer.acknowledged)
        else:
            answer.acknowledged({})
    except ApiError as error:
        respond(messages.ShareFetchResponse(error_code=error.error_code))
    except FailedRequestError:
        respond(messages.ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    else:
        _fetch(request, context, session, denied, answer)


def _request_error(request: messages.ShareFetchRequest, context: RequestContext) -> ErrorCode:
    """Return the error of a request that is not served, else NONE."""
    error_code = member_error(context, request.group_id, request.member_id)
    if error_code:
        return error_code
    limits = request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms
    if _renews_locks(request, context) and any(limits):
        return ErrorCode.INVALID_REQUEST  # a renewal that waits for records could come too late
    return ErrorCode.NONE


def _renews_locks(request: messages.ShareFetchRequest, context: RequestContext) -> bool:
    return context.api_version >= RENEW_VERSION and request.is_renew_ack


def _session(
    request: messages.ShareFetchRequest,
    context: RequestContext,
    partitions: Sequence[tuple[TopicIdPartition, list[AcknowledgementBatch]]],
) -> ShareFetchContext:
    """Return the session that the request begins, continues or ends. Raises ApiError."""
    names = context.broker.image.topic_names
    forgotten = [
        TopicIdPartition(topic.topic_id, number, names.get(topic.topic_id))
        for topic in request.forgotten_topics_data
        for number in topic.partitions
    ]
    return context.broker.share_partitions.sessions.new_context(
        ShareSessionKey(request.group_id or "", request.member_id or ""),
        request.share_session_epoch,
        [partition for partition, _ in partitions],
        forgotten,
        context.connection,
        has_acknowledgements=any(batches for _, batches in partitions),
    )


def _refuse_session(
    request: messages.ShareFetchRequest, context: RequestContext, respond: Respond, error_code: ErrorCode
) -> None:
    """Answer with the session's error; if the session cache is full, at the end of the request's wait."""
    response = messages.ShareFetchResponse(error_code=error_code)
    if error_code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        waiting_fetches = context.broker.share_partitions.waiting_fetches
        waiting_fetches.add_refused(request.max_wait_ms, lambda: respond(response))
    else:
        respond(response)


def _fetch(
    request: messages.ShareFetchRequest,
    context: RequestContext,
    session: ShareFetchContext,
    denied: AbstractSet[str],
    answer: ShareFetchAnswer,
) -> None:
    """Fetch the partitions of the session that have no error."""
    if _renews_locks(request, context):
        answer.fetched({})
        return
    fetched: list[TopicIdPartition] = []
    max_wait_ms = request.max_wait_ms
    for partition in session.partitions:
        error_code = _partition_error(context, partition, denied)
        injected = injected_error(context, *partition.topic_partition)
        if injected:
            max_wait_ms = 0  # as an error of the log ends the wait
        if error_code or injected:
            answer.refuse(partition, error_code or injected)
        else:
            fetched.append(partition)
    if not fetched:
        answer.all_refused()
        return
    if request.share_acquire_mode not in ACQUIRE_MODES:
        answer.fail()
        return
    context.broker.share_partitions.fetch(
        ShareFetch(
            request.group_id or "",
            _fetch_params(request, context, max_wait_ms),
            AcquireLimits(
                request.member_id or "",
                request.max_records,
                request.batch_size,
                request.share_acquire_mode == RECORD_LIMIT,
            ),
            rotate(fetched, request.share_session_epoch),
            answer.fetched,
        )
    )


def _partition_error(context: RequestContext, partition: TopicIdPartition, denied: AbstractSet[str]) -> ErrorCode:
    """Return the error of a session partition that is not fetched, else NONE."""
    if partition.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition.topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.broker.image.partition(partition.topic_partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _fetch_params(request: messages.ShareFetchRequest, context: RequestContext, max_wait_ms: int) -> FetchParams:
    """Return the parameters of all partitions; only leaders serve share fetches."""
    broker = context.broker
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    if context.throttle is not None:
        limit = context.throttle.max_fetch_bytes()
        max_bytes = max_bytes if limit is None else min(max_bytes, int(limit))
    reads_committed = broker.share_partitions.settings.reads_committed(request.group_id or "")
    return FetchParams(
        max_wait_ms=max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=(FetchIsolation.TXN_COMMITTED if reads_committed else FetchIsolation.HIGH_WATERMARK),
        has_client_metadata=False,
        client_id=context.client_id,
    )
