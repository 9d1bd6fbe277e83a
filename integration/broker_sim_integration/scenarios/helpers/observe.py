"""Conversion of responses into observations: the compared fields of a response, by API."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.record_batch import batch_size_at, parse_header, split_batches
from broker_sim.protocol.records import iter_records
from broker_sim_integration.clients.raw_client import ConnectionEndedError
from broker_sim_integration.observations import Observation, Timing, at_once, untimed
from broker_sim_integration.scenarios.helpers.due import usual_timing
from broker_sim_integration.scenarios.helpers.normalise import normalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.clients.user_client import Delivery
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

COMPARED_APIS = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.API_VERSIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
"""APIs whose version ranges must be equal; the simulator serves fewer APIs, see docs/reference/differences.md."""
SHOWN_VALUES = 20
SHOWN_BYTES = 24


def whole_response(
    step: str,
    cluster: ClusterUnderTest,
    reply: Reply[Any],
    timing: Timing | None = None,
    *,
    unordered: Collection[str] = (),
) -> Observation:
    """Observe every field of a response, except those that `normalised` leaves out.

    Without a `timing` it is the usual one of the API. `unordered` names lists in the response whose
    order Kafka does not define.
    """
    return Observation(
        step,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing or usual_timing(reply),
        fields=normalised(reply.message, cluster.brokers.role, unordered),
    )


def seen_in(
    step: str, reply: Reply[Any], *, error_code: int | None = None, base_offset: int | None = None, **fields: Any
) -> Observation:
    """Observe single values of a response that was due at the usual time of its API."""
    return Observation(
        step,
        error_code=error_code,
        base_offset=base_offset,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=usual_timing(reply),
        fields=fields,
    )


def concluded(step: str, reason: str = "follows from several responses", **fields: Any) -> Observation:
    """Observe values that follow from no single response; `reason` names their origin."""
    return Observation(step, timing=untimed(reason), fields=fields)


def produced(
    step: str,
    reply: Reply[messages.ProduceResponse],
    timing: Timing,
    *,
    topic: Topic | None = None,
    partition: int = 0,
    attempt: int = 1,
) -> Observation:
    """Observe one partition of a produce response; without a topic, the response's only topic."""
    found = _partition(
        (
            (named.name, named.topic_id, answer.index, answer)
            for named in reply.message.responses
            for answer in named.partition_responses
        ),
        topic,
        partition,
    )
    return Observation(
        step,
        error_code=found.error_code,
        base_offset=found.base_offset,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        attempt=attempt,
        fields={
            "log_start_offset": found.log_start_offset,
            "log_append_time": found.log_append_time_ms != -1,
            "leader_epoch_hint": found.current_leader.leader_epoch,
            "record_errors": [error.batch_index for error in found.record_errors],
        },
    )


def fetched(
    step: str,
    reply: Reply[messages.FetchResponse],
    timing: Timing,
    *,
    topic: Topic | None = None,
    partition: int = 0,
    attempt: int = 1,
) -> Observation:
    """Observe one partition of a fetch response; without a topic, the response's only topic."""
    found = _partition(
        (
            (named.topic, named.topic_id, answer.partition_index, answer)
            for named in reply.message.responses
            for answer in named.partitions
        ),
        topic,
        partition,
    )
    records: Any = found.records or b""
    values = values_of(records)
    return Observation(
        step,
        error_code=found.error_code,
        base_offset=first_offset(records),
        high_watermark=found.high_watermark,
        records=len(values),
        bytes=len(records),
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        attempt=attempt,
        fields={
            "response_error_code": reply.message.error_code,
            "last_stable_offset": found.last_stable_offset,
            "log_start_offset": found.log_start_offset,
            "diverging_epoch": [found.diverging_epoch.epoch, found.diverging_epoch.end_offset],
            "leader_epoch_hint": found.current_leader.leader_epoch,
            "has_preferred_read_replica": found.preferred_read_replica != -1,
            "values": [_shown(value) for value in values[:SHOWN_VALUES]],
        },
    )


def listed(step: str, reply: Reply[messages.ListOffsetsResponse], timing: Timing, attempt: int = 1) -> Observation:
    """Observe the only partition of a ListOffsets response."""
    found = reply.message.topics[0].partitions[0]
    return Observation(
        step,
        error_code=found.error_code,
        base_offset=found.offset,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        attempt=attempt,
        fields={"timestamp": found.timestamp, "leader_epoch": found.leader_epoch},
    )


def deleted(
    step: str, reply: Reply[messages.DeleteRecordsResponse], timing: Timing, *, attempt: int = 1
) -> Observation:
    """Observe the only partition of a DeleteRecords response; its low watermark becomes the base offset."""
    found = reply.message.topics[0].partitions[0]
    return Observation(
        step,
        error_code=found.error_code,
        base_offset=found.low_watermark,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        attempt=attempt,
    )


def delivered(step: str, delivery: Delivery, timing: Timing, *, attempt: int = 1) -> Observation:
    """Observe the delivery report of a producer client."""
    return Observation(
        step,
        error_code=delivery.error_code,
        base_offset=delivery.offset,
        elapsed_ms=delivery.elapsed_ms,
        answered_ms=delivery.answered_ms,
        timing=timing,
        attempt=attempt,
    )


def read(step: str, records: list[tuple[int, bytes]]) -> Observation:
    """Observe the records that a consumer client has read."""
    return Observation(
        step,
        base_offset=records[0][0] if records else None,
        records=len(records),
        timing=untimed("what came in however many responses the client needed"),
        fields={"values": [_shown(value) for _offset, value in records]},
    )


def described(step: str, cluster: ClusterUnderTest, topic: Topic, partition: int = 0) -> Observation:
    """Observe the metadata of a partition: leader, leader epoch, ISR, offline replicas."""
    found = cluster.metadata.describe(topic, partition=partition)
    return Observation(
        step,
        error_code=found.error_code,
        timing=untimed("a state, asked for when it had been reached"),
        fields={
            "leader": cluster.brokers.role(found.leader),
            "leader_epoch": found.leader_epoch,
            "isr": cluster.brokers.roles(found.isr),
            "offline": cluster.brokers.roles(found.offline),
        },
    )


def answer_or_end(step: str, pending: Pending[Any], timing: Timing, timeout_ms: float = 5_000) -> Observation:
    """Observe whether a request got a response or its connection was closed."""
    try:
        frame = pending.frame(timeout_ms)
    except ConnectionEndedError as ended:
        return Observation(
            step, elapsed_ms=ended.elapsed_ms, answered_ms=ended.answered_ms, timing=timing, fields={"closed": True}
        )
    return Observation(
        step,
        bytes=len(frame),
        elapsed_ms=pending.elapsed_ms,
        answered_ms=pending.answered_ms,
        timing=timing,
        fields={"closed": False},
    )


def values_of(records: bytes | memoryview) -> list[bytes]:
    """Return the record values of all complete batches, in order."""
    return [record.value or b"" for batch in split_batches(records) for record in iter_records(batch)]


def first_offset(records: bytes | memoryview) -> int | None:
    """Return the base offset of the first batch, or None without a complete batch."""
    if not records or batch_size_at(records) is None:
        return None
    return parse_header(records).base_offset


def _shown(value: bytes) -> str:
    if len(value) <= SHOWN_BYTES:
        return value.decode(errors="backslashreplace")
    return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:12]}"


def _partition(answers: Iterable[tuple[str, bytes, int, Any]], topic: Topic | None, partition: int) -> Any:
    for name, topic_id, index, answer in answers:
        ours = topic is None or name == topic.name or bytes(topic_id) == topic.topic_id
        if ours and index == partition:
            return answer
    raise LookupError(f"the response has no partition {partition} of {topic and topic.name}")


def epoch_end(step: str, reply: Reply[messages.OffsetForLeaderEpochResponse]) -> Observation:
    """Observe the only partition of an OffsetForLeaderEpoch response."""
    found = reply.message.topics[0].partitions[0]
    return Observation(
        step,
        error_code=found.error_code,
        base_offset=found.end_offset,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=at_once(),
        fields={"leader_epoch": found.leader_epoch},
    )


def elected(step: str, reply: Reply[messages.ElectLeadersResponse], timing: Timing) -> Observation:
    """Observe the response to an election of at most one partition."""
    results = [
        result.error_code for topic in reply.message.replica_election_results for result in topic.partition_result
    ]
    return Observation(
        step,
        error_code=reply.message.error_code,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        fields={"results": results},
    )


def versions_advertised(step: str, reply: Reply[messages.ApiVersionsResponse]) -> Observation:
    """Observe the version ranges of the APIs in `COMPARED_APIS`."""
    ranges = {
        str(api.api_key): [api.min_version, api.max_version]
        for api in reply.message.api_keys
        if api.api_key in COMPARED_APIS
    }
    return Observation(
        step,
        error_code=reply.message.error_code,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=at_once(),
        fields={"ranges": ranges},
    )
