"""Broker configurations other than Kafka's defaults that scenarios share, a cluster for each.

By default a paused follower stays in the ISR for half a minute, and a killed broker in metadata
for nine seconds. Scenarios about what happens then lower one of the two, so that a run of all
scenarios stays short and the other limit does not interfere.
"""

from __future__ import annotations

from typing import Final

LAG_TIME_MS: Final = 1500
SHORT_LAG: Final = {"replica.lag.time.max.ms": str(LAG_TIME_MS)}
"""A follower that lacks a record leaves the ISR at the first check, of which there is one every
0.75 s, that is 1.5 s after it was last caught up; a paused broker is fenced after 9 s only."""

SESSION_TIMEOUT_MS: Final = 3000
HEARTBEAT_INTERVAL_MS: Final = 500
QUICK_FENCING: Final = {
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "broker.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
}
"""A broker that sends no heartbeat is fenced after 3 s; no follower leaves by its lag for 30 s."""

LONG_SESSION: Final = {"broker.session.timeout.ms": "60000"}
"""A broker may be paused for longer than the default of 9 s without being fenced."""

SMALL_OFFSETS_TOPIC: Final = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
"""For users' consumers: they ask for the coordinator of their group, and then Kafka creates the
offsets topic, by default with fifty partitions of three replicas."""

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
"""No topics are auto-created or deleted, all limits are small, old records are deleted soon."""
