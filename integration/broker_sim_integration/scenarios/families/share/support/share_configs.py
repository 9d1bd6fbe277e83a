"""Broker configurations of scenarios about share groups; each has a cluster of its own."""

from __future__ import annotations

from typing import Final

from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import QUICK_TRANSACTIONS
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS

MAX_SIZE: Final = 3
SHARE_GROUPS: Final = (
    QUICK_GROUPS
    | QUICK_TRANSACTIONS
    | {
        "group.share.min.session.timeout.ms": "100",
        "group.share.min.heartbeat.interval.ms": "50",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.assignment.interval.ms": "0",
        "group.share.initialize.retry.interval.ms": "1000",
        "group.share.max.size": str(MAX_SIZE),
        "share.coordinator.state.topic.num.partitions": "6",
    }
)
"""Groups of at most three members with immediate assignments; locks may be as short as a second, and sessions
shorter. State that could not be initialised is tried again after `offsets.commit.timeout.ms`, 5 s.
"""
FEW_SESSIONS: Final = SHARE_GROUPS | {"group.share.max.share.sessions": str(MAX_SIZE)}
"""Like SHARE_GROUPS, with room for three share sessions per broker."""
