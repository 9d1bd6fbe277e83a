"""Which records a broker had before its power was lost, and has not any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker_sim.log import LogManager, PartitionLog
    from broker_sim.metadata.topic_partition import TopicPartition

KeptBatches = dict["TopicPartition", list[tuple[int, int, bytes]]]
"""Base offset, end offset and bytes of each batch, by partition."""


class LostRecords(NamedTuple):
    """The end of a log that one broker has lost; other replicas may have it."""

    broker_id: int
    topic_partition: TopicPartition
    first_offset: int
    end_offset: int
    """Where the log ended before."""


def kept_batches(logs: LogManager) -> KeptBatches:
    """Return the batches of all logs that are not offline."""
    return {log.topic_partition: _batches(log) for log in logs.logs}


def _batches(log: PartitionLog) -> list[tuple[int, int, bytes]]:
    return [
        (header.base_offset, header.base_offset + header.last_offset_delta + 1, bytes(batch))
        for segment in log.segments
        for header, batch in segment.batches_from(segment.base_offset)
    ]


def lost_records(broker_id: int, before: KeptBatches, logs: LogManager) -> list[LostRecords]:
    """Return for each partition from where on the logs lack what they had."""
    now = {log.topic_partition: log for log in logs.logs}
    lost = []
    for key, batches in before.items():
        log = now.get(key)
        start = 0 if log is None else log.log_start_offset
        found = {} if log is None else {base: batch for base, _, batch in _batches(log)}
        for base, _, batch in batches:
            if base < start and log is not None and log.log_end_offset > start:
                continue  # deleted, not lost
            if found.get(base) != batch:
                lost.append(LostRecords(broker_id, key, base, batches[-1][1]))
                break
    return lost
