"""Broker configurations of scenarios about groups, a cluster for each.

Kafka's bounds keep sessions above 6 s, and those of the new protocol above 45 s. Scenarios about what
happens when a session is over lower them.
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
"""A new group waits 300 ms for members; sessions may be as short as 100 ms."""

GROUP_FAILOVER: Final = QUICK_GROUPS | QUICK_FENCING
"""Like QUICK_GROUPS, and a killed coordinator is fenced after 3 s."""

LIMITED_GROUPS: Final = QUICK_GROUPS | {
    "group.max.size": "2",
    "group.consumer.max.size": "2",
    "offset.metadata.max.bytes": "10",
    "offsets.retention.check.interval.ms": "500",
}
"""Like QUICK_GROUPS, and groups have two members, offsets ten bytes of metadata; expired ones go soon."""

NO_MIGRATION: Final = QUICK_GROUPS | {"group.consumer.migration.policy": "disabled"}
"""Like QUICK_GROUPS; a group with members keeps its protocol."""

COMMIT_TIMEOUT_MS: Final = 1000
SLOW_COMMITS: Final = QUICK_GROUPS | LONG_SESSION | {"offsets.commit.timeout.ms": str(COMMIT_TIMEOUT_MS)}
"""Like QUICK_GROUPS; a commit waits for its replicas for one second, and a paused one stays in the ISR."""
