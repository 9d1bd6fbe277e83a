"""Deletion of old records. Kafka: LogManager.cleanupLogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.broker_client import EARLIEST
from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.scenarios.helpers.broker_configs import RESTRICTED
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

RETENTION_MS: Final = 1000
RETENTION_CHECK_MS: Final = 500
"""`log.retention.check.interval.ms` of these clusters."""


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def old_records_are_deleted_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Twice a record is deleted when it is older than retention.ms, at the broker's next check."""
    topic = cluster.topics.create(
        [cluster.first], retention_ms=str(RETENTION_MS), message_timestamp_type="LogAppendTime"
    )
    leader = cluster.connect(cluster.first)
    for count in (1, 2):
        reply = leader.produce(topic, b"old")

        def is_gone(count: int = count) -> bool:
            found = leader.list_offset(topic, EARLIEST).message.topics[0].partitions[0]
            return found.offset == count

        gone_ms = cluster.wait_until(is_gone, "the record is deleted")
        due = on_event(
            reply.answered_ms + RETENTION_MS - reply.sent_ms,
            earliest_ms=RETENTION_MS,
            spread_ms=RETENTION_CHECK_MS,
            reason="the broker looks for old records every 500 ms",
        )
        yield Observation("deleted", elapsed_ms=gone_ms - reply.sent_ms, answered_ms=gone_ms, timing=due, attempt=count)
