"""The catalogue: all scenarios, in the order of their families."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Final

from broker_sim.errors import did_you_mean
from broker_sim_integration.scenarios.families.ages import ages
from broker_sim_integration.scenarios.families.compaction import compacted_transactions, compaction
from broker_sim_integration.scenarios.families.fetch import (
    fetch_leader_change,
    fetch_limits,
    fetch_long_poll,
    fetch_sessions,
    list_offsets,
)
from broker_sim_integration.scenarios.families.groups import (
    consumer_groups,
    consumer_timeouts,
    coordinator_failover,
    groups,
    migration,
    mixed_groups,
    offsets,
    rebalance,
    refused_migration,
    regex_subscriptions,
    static_members,
)
from broker_sim_integration.scenarios.families.network import api_versions, connectivity, limits_invalid, restarts
from broker_sim_integration.scenarios.families.produce import idempotence, pipelining, produce_acks, produce_timeouts
from broker_sim_integration.scenarios.families.quotas import (
    connection_limits,
    quota_administration,
    quotas,
    replication_quotas,
)
from broker_sim_integration.scenarios.families.replication import (
    controlled_shutdown,
    elections,
    fencing_epochs,
    high_watermark,
    isr,
    quorum_voters,
    unregistration,
)
from broker_sim_integration.scenarios.families.restart import lost_files, recovery, restart
from broker_sim_integration.scenarios.families.security import scram_credentials
from broker_sim_integration.scenarios.families.share import (
    share_deliveries,
    share_fetches,
    share_groups,
    share_sessions,
    share_starts,
)
from broker_sim_integration.scenarios.families.streams import streams_groups, streams_times, streams_topics
from broker_sim_integration.scenarios.families.timing import changes, purgatories, waits, wake_ups
from broker_sim_integration.scenarios.families.topics import (
    config_admin,
    config_resources,
    configs,
    delete_records,
    log_directories,
    metadata,
    replica_moves,
    retention,
    topic_admin,
)
from broker_sim_integration.scenarios.families.transactions import (
    fencing,
    read_committed,
    sequence_numbers,
    transaction_administration,
    transaction_failover,
    transaction_requests,
    transaction_timeout,
    transaction_versions,
    transactional_offsets,
)
from broker_sim_integration.scenarios.scenario import Scenario, scenarios_of

if TYPE_CHECKING:
    from collections.abc import Iterable

FAMILIES: Final = (
    produce_acks,
    produce_timeouts,
    isr,
    high_watermark,
    fetch_long_poll,
    fetch_limits,
    fetch_leader_change,
    fetch_sessions,
    fencing_epochs,
    delete_records,
    elections,
    controlled_shutdown,
    unregistration,
    quorum_voters,
    idempotence,
    pipelining,
    connectivity,
    restarts,
    limits_invalid,
    list_offsets,
    topic_admin,
    metadata,
    config_admin,
    config_resources,
    configs,
    retention,
    log_directories,
    replica_moves,
    api_versions,
    waits,
    wake_ups,
    changes,
    purgatories,
    ages,
    groups,
    rebalance,
    static_members,
    offsets,
    coordinator_failover,
    consumer_groups,
    consumer_timeouts,
    regex_subscriptions,
    migration,
    refused_migration,
    mixed_groups,
    share_groups,
    share_deliveries,
    share_fetches,
    share_sessions,
    share_starts,
    streams_groups,
    streams_topics,
    streams_times,
    read_committed,
    sequence_numbers,
    fencing,
    transaction_timeout,
    transaction_versions,
    transactional_offsets,
    transaction_requests,
    transaction_administration,
    transaction_failover,
    compaction,
    compacted_transactions,
    restart,
    recovery,
    lost_files,
    scram_credentials,
    quota_administration,
    quotas,
    replication_quotas,
    connection_limits,
)

CATALOGUE: Final[tuple[Scenario, ...]] = tuple(found for module in FAMILIES for found in scenarios_of(module))


def select(patterns: Iterable[str]) -> list[Scenario]:
    """Return the scenarios whose name or family/name matches a pattern (`*`, `?`); without patterns, all scenarios.

    Raise ValueError for a pattern that matches no scenario.
    """
    names = list(patterns)
    if not names:
        return list(CATALOGUE)
    for pattern in names:
        if not any(_fits(found, pattern) for found in CATALOGUE):
            hint = did_you_mean(pattern, (found.name for found in CATALOGUE))
            raise ValueError(f"unknown scenario {pattern!r}{hint}; `broker-sim-compare list` lists all")
    return [found for found in CATALOGUE if any(_fits(found, pattern) for pattern in names)]


def _fits(found: Scenario, pattern: str) -> bool:
    return any(
        fnmatch.fnmatchcase(name, pattern) for name in (found.name, found.family, f"{found.family}/{found.name}")
    )
