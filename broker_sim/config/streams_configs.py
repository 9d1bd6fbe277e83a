"""Configurations of streams groups.

Mirrors their part of `GroupCoordinatorConfig`, with the defaults of Kafka 4.3.
"""

from dataclasses import dataclass
from typing import Any, Final

from broker_sim.config.definition import CLUSTER_WIDE, INT, MAX_INT, at_least, declare
from broker_sim.config.group_limits import HEARTBEAT_AND_SESSION, check_heartbeat_interval, check_limits

_PREFIX: Final = "group_streams_"


@dataclass(frozen=True, kw_only=True)
class StreamsGroupConfigs:
    """Members of streams groups, and how tasks are assigned to them."""

    group_streams_session_timeout_ms: int = declare(
        INT, 45_000, "Session timeout of members of streams groups.", at_least(1)
    )
    group_streams_min_session_timeout_ms: int = declare(
        INT, 45_000, "Shortest session timeout of members of streams groups.", at_least(1)
    )
    group_streams_max_session_timeout_ms: int = declare(
        INT, 60_000, "Longest session timeout of members of streams groups.", at_least(1)
    )
    group_streams_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Heartbeat interval of members of streams groups.", at_least(1)
    )
    group_streams_min_heartbeat_interval_ms: int = declare(
        INT, 5_000, "Shortest heartbeat interval of members of streams groups.", at_least(1)
    )
    group_streams_max_heartbeat_interval_ms: int = declare(
        INT, 15_000, "Longest heartbeat interval of members of streams groups.", at_least(1)
    )
    group_streams_max_size: int = declare(INT, MAX_INT, "Most members of a streams group.", at_least(1))
    group_streams_num_standby_replicas: int = declare(INT, 0, "Standby tasks of each task that has state.", at_least(0))
    group_streams_max_standby_replicas: int = declare(
        INT, 2, "Highest number of standby tasks that a streams group may set.", at_least(0)
    )
    group_streams_initial_rebalance_delay_ms: int = declare(
        INT, 3_000, "How long a new streams group waits for more members before it assigns tasks.", at_least(0)
    )
    group_streams_assignment_interval_ms: int = declare(
        INT, 1_000, "Shortest time between two assignments of a streams group.", at_least(0), update_mode=CLUSTER_WIDE
    )
    group_streams_min_assignment_interval_ms: int = declare(
        INT, 0, "Lowest assignment interval of a streams group.", at_least(0)
    )
    group_streams_max_assignment_interval_ms: int = declare(
        INT, 15_000, "Highest assignment interval of a streams group.", at_least(0)
    )


def check_streams_configs(config: Any) -> None:
    """Raise ConfigError when these configurations of a broker do not fit together; mirrors `validate`."""
    check_limits(config, _PREFIX, HEARTBEAT_AND_SESSION)
    check_limits(config, _PREFIX, [("num_standby_replicas", "max_standby_replicas")])
    check_heartbeat_interval(config, _PREFIX)
