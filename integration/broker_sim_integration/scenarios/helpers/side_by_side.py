"""Requests that wait in parallel on many connections, so that many samples take no longer than one.

The samples of one wait are spread over the whole time: if the machine stalls for a moment, only a few of
them are late.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim_integration.clients.stopwatch import now_ms, pause_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

    Start = Callable[[BrokerClient, "Turn"], Pending[Any]]

SAMPLES: Final = 30
ANSWERED_WITHIN_MS: Final = 100
"""Time in ms after the timeout of its last request before a connection is used again."""


class Turn(NamedTuple):
    """One request: its time of sending, its wait, and its lane."""

    at_ms: float
    lane: int
    """A connection, and where offsets matter a partition of its own: two requests on different
    connections may be appended in either order.
    """
    wait_ms: int
    attempt: int
    """Number of the request among those with the same wait, from 1."""
    round: int
    """Number of the request in its lane, from 1."""


def turns_of(waits_ms: Iterable[int], within_ms: int, samples: int = SAMPLES) -> list[Turn]:
    """Return `samples` turns for each of the waits, in the order of sending.

    All waits end within `within_ms`. Each lane has only one request at a time.
    """
    turns: list[Turn] = []
    lanes = 0
    for wait_ms in waits_ms:
        step_ms = (within_ms - wait_ms) / samples
        needed = min(samples, math.ceil((wait_ms + ANSWERED_WITHIN_MS) / step_ms))
        turns += [
            Turn(index * step_ms, lanes + index % needed, wait_ms, index + 1, index // needed + 1)
            for index in range(samples)
        ]
        lanes += needed
    return sorted(turns)


def lanes_of(turns: Iterable[Turn]) -> int:
    """Return the number of lanes."""
    return 1 + max(turn.lane for turn in turns)


def side_by_side(
    cluster: ClusterUnderTest, turns: Sequence[Turn], starts: Mapping[str, Start]
) -> Iterator[tuple[str, Turn, Reply[Any]]]:
    """Send every turn to the first broker, once per entry of `starts`; yield each response.

    `starts` maps a name to a function that sends a request on the connection passed to it.
    """
    clients = {(name, lane): cluster.connect(cluster.first) for name in starts for lane in range(lanes_of(turns))}
    last: dict[tuple[str, int], Pending[Any]] = {}
    parked: list[tuple[str, Turn, Pending[Any]]] = []
    began_ms = now_ms()
    for turn in turns:
        pause_until(began_ms + turn.at_ms)
        for name, start in starts.items():
            lane = name, turn.lane
            if lane in last:
                last[lane].frame()
            last[lane] = start(clients[lane], turn)
            parked.append((name, turn, last[lane]))
    for name, turn, pending in parked:
        yield name, turn, pending.result()


def pause_until(moment_ms: float) -> None:
    """Block until `now_ms()` reaches `moment_ms`; return at once if it has passed."""
    pause_ms(moment_ms - now_ms())
