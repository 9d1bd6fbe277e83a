"""Broker configurations other than Kafka's defaults that scenarios share; each has a cluster of its own.

By default a paused follower stays in the ISR for half a minute, and a killed broker in the metadata
for nine seconds. Scenarios about these limits lower one of the two, so that a run of all scenarios
stays short and the other limit does not interfere.
"""

from __future__ import annotations

from typing import Final

LAG_TIME_MS: Final = 1500
SHORT_LAG: Final = {"replica.lag.time.max.ms": str(LAG_TIME_MS)}
"""A follower that lacks a record leaves the ISR 1.5 s after it was last caught up, at the leader's next check
(one every 0.75 s); a paused broker is fenced after 9 s only.
"""

SESSION_TIMEOUT_MS: Final = 3000
HEARTBEAT_INTERVAL_MS: Final = 500
QUICK_FENCING: Final = {
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "broker.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
}
"""A broker that sends no heartbeat is fenced after 3 s; a lagging follower stays in the ISR for 30 s."""

LONG_SESSION: Final = {"broker.session.timeout.ms": "60000"}
"""A paused broker is fenced after 60 s instead of Kafka's default of 9 s."""

SMALL_OFFSETS_TOPIC: Final = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
"""For scenarios with a consumer client: its search for the group coordinator makes Kafka create the offsets
topic, by default with 50 partitions of three replicas.
"""

RESTRICTED: Final = {
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "false",
    "num.partitions": "2",
    "default.replication.factor": "2",
    "fetch.max.bytes": "2048",
    "message.max.bytes": "5000",
    "socket.request.max.bytes": "100000",
    "max.request.partition.size.limit": "3",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}
"""No creation of topics by metadata requests, no deletion of topics, small limits, early deletion of old records."""
