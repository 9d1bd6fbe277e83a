"""Broker configurations other than Kafka's defaults that scenarios share, a cluster for each.

The defaults make a frozen follower stay in the ISR for half a minute and a dead broker in the
metadata for nine seconds. Scenarios about what happens then lower one of the two, so that a run of
the whole catalogue stays short and the other limit does not come in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from integration.observations import on_event

if TYPE_CHECKING:
    from integration.observations import Timing

__all__ = [
    "FENCED_WITHIN_MS",
    "LAG_TIME_MS",
    "QUICK_FENCING",
    "RESTRICTED",
    "SESSION_TIMEOUT_MS",
    "SHORT_LAG",
    "SMALL_OFFSETS_TOPIC",
    "lagged_out",
]

LAG_TIME_MS: Final = 1500
SHORT_LAG: Final = {"replica.lag.time.max.ms": str(LAG_TIME_MS)}
"""A follower that lacks a record leaves the ISR 1.5 s after it was last caught up, or at one of
the checks every half of that; a frozen broker is not fenced for 9 s."""

SESSION_TIMEOUT_MS: Final = 3000
QUICK_FENCING: Final = {
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "broker.heartbeat.interval.ms": "500",
}
"""A broker that sends no heartbeat is fenced after 3 s; nobody lags out for 30 s."""
FENCED_WITHIN_MS: Final = 1500
"""The last heartbeat was up to 500 ms before the fault, and the controller looks now and then."""

SMALL_OFFSETS_TOPIC: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
"""For users' consumers: they look for their group's coordinator, and that makes Kafka create the
topic of offsets, with fifty partitions of three replicas unless told otherwise."""

FETCH_WAIT_MS: Final = 500
"""``replica.fetch.wait.max.ms``: a follower that had all was last seen up to this long ago."""


def lagged_out(frozen_ms: float, sent_ms: float) -> Timing:
    """Return that a request sent at ``sent_ms`` was due when the frozen follower left the ISR."""
    due_ms = frozen_ms + LAG_TIME_MS - sent_ms
    return on_event(due_ms, early_ms=FETCH_WAIT_MS + 100, late_ms=LAG_TIME_MS / 2 + 300)


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
"""Topics are neither made unasked nor deleted, everything is small, old records go soon."""
