"""Broker configurations of scenarios about streams groups."""

from __future__ import annotations

from typing import Final

from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS

INITIAL_DELAY_MS: Final = 500
MAX_SIZE: Final = 3
SESSION_MS: Final = 6000
STREAMS_GROUPS: Final = QUICK_GROUPS | {
    "group.streams.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS),
    "group.streams.min.session.timeout.ms": "100",
    "group.streams.session.timeout.ms": str(SESSION_MS),
    "group.streams.min.heartbeat.interval.ms": "50",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
    "group.streams.max.size": str(MAX_SIZE),
    "auto.create.topics.enable": "false",
}
"""A new group waits half a second for members, of which it has at most three; then assignments are immediate.
Tasks with state have one standby task.
"""
