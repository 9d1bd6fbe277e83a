"""Timings that depend on a period of Kafka's own: a follower's fetch, an ISR check, a fencing check.

The phase of the period is random, so each timing has a spread and the reason for it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.scenarios.helpers.broker_configs import (
    HEARTBEAT_INTERVAL_MS,
    LAG_TIME_MS,
    SESSION_TIMEOUT_MS,
)

if TYPE_CHECKING:
    from broker_sim_integration.clients.stopwatch import Moment
    from broker_sim_integration.observations import Timing

FETCH_WAIT_MS: Final = 500
"""`replica.fetch.wait.max.ms`: the longest wait of a fetch by a follower that has all records."""
NEXT_FETCH: Final = "a follower tells what it has with its next fetch, one every 500 ms"
COLD_START_MS: Final = 1000
ROUND_TRIP_MS: Final = 100.0
"""Slack in ms: consecutive fetches of a follower, or heartbeats of a broker, are a period and a round trip apart."""
FETCH_BACKOFF_MS: Final = int(COMMON_CONFIGS["replica.fetch.backoff.ms"])
"""Delay before a follower fetches a partition again after an error."""

COMMIT_MS: Final = 25
"""`controller.quorum.append.linger.ms`. A flush of Kafka's log takes mostly 20 ms, sometimes 150 ms; the
tolerance for late responses covers that.
"""


def at_next_fetch() -> Timing:
    """Return the timing of a response that is due when a follower's next fetch arrives."""
    return on_event(0.0, spread_ms=FETCH_WAIT_MS, reason=NEXT_FETCH)


def at_new_leader() -> Timing:
    """Return the timing of a produce with acks=all that is due when the followers fetch from a new leader."""
    reason = "a follower that asked too soon asks again after 100 ms, with its next fetch"
    return on_event(0.0, spread_ms=FETCH_BACKOFF_MS + FETCH_WAIT_MS, reason=reason)


def committed() -> Timing:
    """Return the timing of a response that is due, at the latest, when a change of metadata is committed.

    An error may be returned earlier.
    """
    reason = "a controller gathers changes for up to 25 ms"
    return on_event(0.0, spread_ms=COMMIT_MS, reason=reason)


def just_started() -> Timing:
    """Return the timing of an immediate response from a broker whose process has just been started."""
    reason = "a JVM that was just started loads its classes with the first requests"
    return on_event(0.0, spread_ms=COLD_START_MS, reason=reason)


def lagged_out(paused: Moment, sent_ms: float) -> Timing:
    """Return the timing of a response to a request of `sent_ms` that is due when a paused follower leaves the ISR.

    The follower leaves the ISR `LAG_TIME_MS` after its last fetch, at the leader's next check.
    """
    return on_event(
        paused + LAG_TIME_MS - sent_ms,
        earliest_ms=paused.began_ms - FETCH_WAIT_MS - ROUND_TRIP_MS + LAG_TIME_MS - sent_ms,
        spread_ms=LAG_TIME_MS / 2,
        reason="the leader checks its ISRs every half lag time",
    )


def next_check_ms(seen_ms: float, after_ms: float) -> float:
    """Return the time of the leader's first ISR check after `after_ms`, from the time `seen_ms` of any other check."""
    period_ms = LAG_TIME_MS / 2
    return seen_ms + period_ms * math.ceil((after_ms - seen_ms) / period_ms)


def fenced(
    lost: Moment, sent_ms: float, *, session_ms: float = SESSION_TIMEOUT_MS, heartbeat_ms: float = HEARTBEAT_INTERVAL_MS
) -> Timing:
    """Return the timing of a response to a request of `sent_ms` that is due when a lost broker is fenced.

    The broker is fenced a session after its last heartbeat, at the controller's next check.
    """
    return on_event(
        lost + session_ms - sent_ms,
        earliest_ms=lost.began_ms - heartbeat_ms - ROUND_TRIP_MS + session_ms - sent_ms,
        spread_ms=session_ms / 8,
        reason="the controller looks for stale brokers eight times in a session",
    )


def at_next_heartbeat(due: Timing, heartbeat_ms: float = HEARTBEAT_INTERVAL_MS) -> Timing:
    """Return the timing of a broker that acts on a change of the controller: `due` plus a heartbeat interval.

    The controller does not call brokers. They learn of the change in the response to their next heartbeat.
    """
    return replace(
        due,
        spread_ms=due.spread_ms + heartbeat_ms,
        reason=f"{due.reason}, and a broker hears of it with its next heartbeat",
    )


def fencing(
    step: str,
    lost: Moment,
    seen_ms: float,
    *,
    session_ms: float = SESSION_TIMEOUT_MS,
    heartbeat_ms: float = HEARTBEAT_INTERVAL_MS,
) -> Observation:
    """Observe that a lost broker was fenced, as first seen at `seen_ms`."""
    due = fenced(lost, lost, session_ms=session_ms, heartbeat_ms=heartbeat_ms)
    return Observation(step, elapsed_ms=seen_ms - lost, answered_ms=seen_ms, timing=due)


def shrinking(step: str, paused: Moment, seen_ms: float) -> Observation:
    """Observe that a paused follower left the ISR because of its lag, as first seen at `seen_ms`."""
    due = lagged_out(paused, paused)
    return Observation(step, elapsed_ms=seen_ms - paused, answered_ms=seen_ms, timing=due)
