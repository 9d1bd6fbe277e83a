"""Broker configurations of scenarios about groups; each has a cluster of its own.

Kafka's defaults bound classic sessions to at least 6 s, and sessions of the consumer protocol (KIP-848) to
at least 45 s. Scenarios about expired sessions lower these bounds.
"""

from __future__ import annotations

from typing import Final

from broker_sim_integration.scenarios.helpers.broker_configs import LONG_SESSION, QUICK_FENCING

INITIAL_DELAY_MS: Final = 300
CONSUMER_SESSION_MS: Final = 3000
QUICK_GROUPS: Final = {
    "group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS),
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "6",
}
"""The first rebalance of a new group is delayed by 300 ms; sessions may be as short as 100 ms."""

GROUP_FAILOVER: Final = QUICK_GROUPS | QUICK_FENCING
"""Like QUICK_GROUPS, and a killed coordinator is fenced after 3 s."""

LIMITED_GROUPS: Final = QUICK_GROUPS | {
    "group.max.size": "2",
    "group.consumer.max.size": "2",
    "offset.metadata.max.bytes": "10",
    "offsets.retention.check.interval.ms": "500",
}
"""Like QUICK_GROUPS, with at most two members per group and 10 bytes of offset metadata; offsets expire soon."""

NO_MIGRATION: Final = QUICK_GROUPS | {"group.consumer.migration.policy": "disabled"}
"""Like QUICK_GROUPS, without migration: a group with members keeps its protocol."""

COMMIT_TIMEOUT_MS: Final = 1000
SLOW_COMMITS: Final = QUICK_GROUPS | LONG_SESSION | {"offsets.commit.timeout.ms": str(COMMIT_TIMEOUT_MS)}
"""Like QUICK_GROUPS; a commit waits one second for its replicas, and a paused replica stays in the ISR."""
