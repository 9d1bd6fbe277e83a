"""Which producer ids have been given away, by what the logs have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.transaction.records import TransactionLogValue, serde

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.log import LogManager, PartitionLog


def highest_producer_id(logs: LogManager) -> int:
    """Return the highest id of a producer that has written to these logs, or that transactions know.

    -1 is none. Logs of transactions are read as a whole; of all others the producers' states are enough,
    because an id without one is new to the log.
    """
    highest = NO_PRODUCER_ID
    for log in logs.logs:
        highest = max(highest, *log.producer_state.active_producers, NO_PRODUCER_ID)
        if log.topic_partition.topic == TRANSACTION_STATE_TOPIC:
            highest = max(highest, *_of_transactions(log), NO_PRODUCER_ID)
    return highest


def _of_transactions(log: PartitionLog) -> Iterator[int]:
    for segment in log.segments:
        for header, batch in segment.batches_from(segment.base_offset):
            if header.is_control:
                continue
            try:
                for _, record in serde.decode_batch(batch):
                    value = record.value
                    if isinstance(value, TransactionLogValue):
                        yield value.producer_id
                        yield value.next_producer_id
            except (ApiError, ProtocolError):
                continue  # the coordinator that loads it tells what is wrong
