"""ShareFetch (key 78), versions 1-2; mirrors `KafkaApis.handleShareFetchRequest`.

Behaviour:
* acknowledges first, if it has something to acknowledge, then fetches; answered when both are done
* a session (KIP-932) has the partitions; the request has what changes of them, and the last one ends it
* without room for its session it waits its time out before it is told so
* with a quota, a member that has read more than it may is answered empty; the records stay with it
* one that renews locks fetches nothing, and says so by its limits
* partitions are answered that have records, an error, something acknowledged, or are new in the session
* as by Kafka, UNKNOWN_SERVER_ERROR answers all of it where a topic is to be answered that does not exist;
  with an authorizer then nothing is acknowledged or fetched

Version notes: 2 brings limited records (KIP-1206) and the renewal of locks (KIP-1222).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH
from broker_sim.handlers.share.acknowledgements import RENEW_VERSION, acknowledge, asked_partitions
from broker_sim.handlers.share.checks import denied_topics, member_error
from broker_sim.handlers.share.partition_order import in_mutable_map_order, in_to_map_order
from broker_sim.handlers.share.share_fetch_response import build_response, response_bytes, throttled
from broker_sim.handlers.support.injected_error import injected_error
from broker_sim.metadata.topic_partition import TopicIdPartition
from broker_sim.protocol import messages
from broker_sim.replica import FetchIsolation, FetchParams
from broker_sim.share.partition.acknowledgement import FailedRequestError
from broker_sim.share.partition.acquisition import WantedRecords
from broker_sim.share.partition.share_fetch import ShareFetch, SharePartitionData, rotate
from broker_sim.share.session.share_session import ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.share.partition.acknowledgement import AcknowledgementBatch
    from broker_sim.share.session.share_session import ShareFetchContext

    Respond = Callable[[messages.ShareFetchResponse], None]
    Fetched = Mapping[TopicIdPartition, SharePartitionData]
    Acknowledged = Mapping[TopicIdPartition, ApiError | None]

RECORD_LIMIT: Final = 1
"""The `share.acquire.mode` in which batches are split."""
ACQUIRE_MODES: Final = (0, RECORD_LIMIT)


def handle_share_fetch(request: messages.ShareFetchRequest, context: RequestContext, respond: Respond) -> None:
    """Let a member acquire records, now or when there are some."""
    error_code = member_error(context, request.group_id, request.member_id)
    if not error_code and _renews_and_fetches(request, context):
        error_code = ErrorCode.INVALID_REQUEST
    if error_code:
        respond(messages.ShareFetchResponse(error_code=error_code))
        return
    asked = asked_partitions(request, context)
    try:
        session = _session(request, context, asked)
    except ApiError as error:
        failed = messages.ShareFetchResponse(error_code=error.error_code)
        if error.error_code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            waiting_fetches = context.broker.share_partitions.waiting_fetches
            waiting_fetches.add_refused(request.max_wait_ms, lambda: respond(failed))
        else:
            respond(failed)
        return
    _Served(request, context, session, dict(asked), respond).serve()


def _renews_and_fetches(request: messages.ShareFetchRequest, context: RequestContext) -> bool:
    """Whether a request renews locks and does not say that it wants no records, which could take too long."""
    return (
        context.api_version >= RENEW_VERSION
        and request.is_renew_ack
        and any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms))
    )


def _session(
    request: messages.ShareFetchRequest,
    context: RequestContext,
    asked: Sequence[tuple[TopicIdPartition, list[AcknowledgementBatch]]],
) -> ShareFetchContext:
    """Return the session that the request begins, goes on with or ends. Raises ApiError."""
    names = context.broker.image.topic_names
    forgotten = [
        TopicIdPartition(topic.topic_id, number, names.get(topic.topic_id))
        for topic in request.forgotten_topics_data
        for number in topic.partitions
    ]
    return context.broker.share_partitions.sessions.new_context(
        ShareSessionKey(request.group_id or "", request.member_id or ""),
        request.share_session_epoch,
        [partition for partition, _ in asked],
        forgotten,
        context.connection,
        has_acknowledgements=any(batches for _, batches in asked),
    )


class _Served:
    """One request from its session to its answer."""

    __slots__ = ("_acknowledged", "_asked", "_context", "_fetched", "_request", "_respond", "_session", "_topic_names")

    def __init__(
        self,
        request: messages.ShareFetchRequest,
        context: RequestContext,
        session: ShareFetchContext,
        asked: Mapping[TopicIdPartition, list[AcknowledgementBatch]],
        respond: Respond,
    ) -> None:
        self._request = request
        self._context = context
        self._session = session
        self._asked = asked
        self._respond = respond
        self._topic_names = context.broker.image.topic_names
        self._fetched: Fetched | None = None
        self._acknowledged: Acknowledged | None = None

    def serve(self) -> None:
        """Acknowledge and fetch."""
        request, context = self._request, self._context
        try:
            denied = denied_topics(context, (*self._session.partitions, *self._asked))
        except ApiError as error:
            self._respond(messages.ShareFetchResponse(error_code=error.error_code))
            return
        if any(self._asked.values()):
            try:
                acknowledge(request, context, self._asked, denied, self._on_acknowledged)
            except FailedRequestError:
                self._fail()
                return
        else:
            self._acknowledged = {}
        if context.api_version >= RENEW_VERSION and request.is_renew_ack:
            self._on_fetched({})
        else:
            self._fetch(denied)

    def _on_acknowledged(self, acknowledged: Acknowledged) -> None:
        self._acknowledged = acknowledged
        self._maybe_answer()

    def _on_fetched(self, fetched: Fetched) -> None:
        self._fetched = fetched
        self._maybe_answer()

    def _fetch(self, denied: AbstractSet[str]) -> None:
        request, context = self._request, self._context
        refused: dict[TopicIdPartition, SharePartitionData] = {}
        wanted: list[TopicIdPartition] = []
        max_wait_ms = request.max_wait_ms
        for partition in self._session.partitions:
            error_code = _partition_error(context, partition, denied)
            injected = injected_error(context, *partition.topic_partition)
            if injected:
                max_wait_ms = 0  # as an error of the log ends the wait
            if error_code or injected:
                refused[partition] = SharePartitionData(error_code or injected)
            else:
                wanted.append(partition)
        if not wanted:
            self._on_fetched(in_mutable_map_order(refused))
            return
        if request.share_acquire_mode not in ACQUIRE_MODES:
            self._fail()
            return
        records = WantedRecords(
            request.member_id or "", request.max_records, request.batch_size, request.share_acquire_mode == RECORD_LIMIT
        )
        context.broker.share_partitions.fetch(
            ShareFetch(
                request.group_id or "",
                _fetch_params(request, context, max_wait_ms),
                records,
                rotate(wanted, request.share_session_epoch),
                lambda fetched: self._on_fetched(in_to_map_order({**fetched, **refused})),
            )
        )

    def _fail(self) -> None:
        self._respond(messages.ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))

    def _maybe_answer(self) -> None:
        """Answer when both are done, but a member that has read too much with nothing."""
        if self._fetched is None or self._acknowledged is None:
            return
        context, request = self._context, self._request
        throttle = context.throttle
        if throttle is not None and throttle.refuses_fetch(response_bytes(context, self._session, self._fetched)):
            response = throttled(context, request, self._session, self._acknowledged)
        else:
            response = build_response(
                context, request, self._session, self._fetched, self._acknowledged, self._topic_names
            )
        if request.share_session_epoch == FINAL_EPOCH:
            key = ShareSessionKey(request.group_id or "", request.member_id or "")
            context.broker.share_partitions.release_session(key)
        self._respond(response)


def _partition_error(context: RequestContext, partition: TopicIdPartition, denied: AbstractSet[str]) -> ErrorCode:
    """Return why a partition of the session is not fetched, NONE if it is."""
    if partition.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition.topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.broker.image.partition(partition.topic_partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _fetch_params(request: messages.ShareFetchRequest, context: RequestContext, max_wait_ms: int) -> FetchParams:
    """Return what holds for all partitions; only leaders serve share fetches."""
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
