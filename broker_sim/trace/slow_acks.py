"""The slowest acks=all requests of a trace, and which followers kept them waiting.

A record that is sent with acks=all is acknowledged when all in-sync replicas have it. Until then its request is
parked in the leader's purgatory. Followers take records by fetches, which the leader traces too. So a follower that
sent no fetch while the request was parked kept it waiting.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.trace.reading import Event

FOLLOWER: Final = "replica-"
"""The client ids of followers begin with this."""
SAME_MOMENT_MS: Final = 10
"""A fetch that completes a request may be traced so long after it."""
ENDS: Final = frozenset({"completed", "expired", "cancelled"})


@dataclass
class Silence:
    """A time in which a follower sent no fetch to a leader; `end_ms` is None if the trace ended first."""

    begin_ms: int
    end_ms: int | None

    def within(self, begin_ms: int, end_ms: int) -> int:
        """Return how many of these milliseconds the silence covers."""
        return max(min(end_ms if self.end_ms is None else self.end_ms, end_ms) - max(self.begin_ms, begin_ms), 0)


@dataclass
class Follower:
    """The fetches of one follower to one leader."""

    broker: int
    keys: set[str] = field(default_factory=set)
    """The partitions that it fetches."""
    silences: list[Silence] = field(default_factory=list)
    pending: set[int] = field(default_factory=set)
    """The fetches that wait at the leader."""


@dataclass(frozen=True)
class SlowRequest:
    """An acks=all request that waited, and the longest silence of each follower of its partitions meanwhile."""

    ended_ms: int
    broker: int
    keys: tuple[str, ...]
    outcome: str
    waited_ms: int
    error_code: int
    silent_ms: Mapping[int, int]
    """Milliseconds without a fetch, by the follower's broker id."""
    has_left: frozenset[int]
    """The followers that were still silent when the request ended."""
    lateness_ms: int
    """Lateness of the latest timer of the leader until then."""


class SlowAcks:
    """Reads the events of a trace, and keeps the `count` acks=all requests that waited longest."""

    def __init__(self, count: int) -> None:
        self.requests = 0
        """Number of acks=all requests that have ended."""
        self._count = count
        self._slowest: list[tuple[int, int, Event, int]] = []
        self._followers: dict[tuple[str, int], dict[str, Follower]] = {}
        self._lateness_ms: dict[tuple[str, int], int] = {}

    def add(self, event: Event) -> None:
        """Take the next event."""
        leader = event["run_id"], event["broker"]
        if event["lateness_ms"]:
            self._lateness_ms[leader] = max(self._lateness_ms.get(leader, 0), event["lateness_ms"])
        client_id = event["client_id"] or ""
        if event["purgatory"] == "Produce":
            if event["event"] in ENDS:
                self.requests += 1
                entry = event["waited_ms"] or 0, -self.requests, event, self._lateness_ms.get(leader, 0)
                if len(self._slowest) < self._count:
                    heapq.heappush(self._slowest, entry)
                else:
                    heapq.heappushpop(self._slowest, entry)
        elif event["purgatory"] == "Fetch" and client_id.startswith(FOLLOWER):
            followers = self._followers.setdefault(leader, {})
            follower = followers.setdefault(client_id, Follower(int(client_id.removeprefix(FOLLOWER))))
            _note_fetch(follower, event)

    def slowest(self) -> list[SlowRequest]:
        """Return the requests that waited longest, the longest first."""
        return [self._explained(event, lateness_ms) for _, _, event, lateness_ms in sorted(self._slowest, reverse=True)]

    def _explained(self, event: Event, lateness_ms: int) -> SlowRequest:
        ended_ms, waited_ms = event["ts_ms"], event["waited_ms"] or 0
        keys = event["keys"]
        silent_ms = {}
        has_left = set()
        for follower in self._followers.get((event["run_id"], event["broker"]), {}).values():
            if follower.keys.isdisjoint(keys):
                continue
            covered = [(each.within(ended_ms - waited_ms, ended_ms), each) for each in follower.silences]
            longest_ms, longest = max(covered, key=lambda one: one[0], default=(0, None))
            silent_ms[follower.broker] = longest_ms
            is_over = longest is not None and longest.end_ms is not None and longest.end_ms <= ended_ms + SAME_MOMENT_MS
            if longest_ms and not is_over:
                has_left.add(follower.broker)
        return SlowRequest(
            ended_ms,
            event["broker"],
            tuple(keys),
            event["event"],
            waited_ms,
            event["error_code"] or 0,
            dict(sorted(silent_ms.items())),
            frozenset(has_left),
            lateness_ms,
        )


def _note_fetch(follower: Follower, event: Event) -> None:
    """Begin a silence where the last fetch that waited is answered, end it with the next fetch."""
    operation_id = event["operation_id"]
    if event["event"] == "tried":
        follower.keys.update(event["keys"])
        follower.pending.add(operation_id)
        if follower.silences and follower.silences[-1].end_ms is None:
            follower.silences[-1].end_ms = event["ts_ms"]
            if follower.silences[-1].end_ms == follower.silences[-1].begin_ms:
                follower.silences.pop()
    elif event["event"] in ENDS:
        follower.pending.discard(operation_id)
        if not follower.pending:
            follower.silences.append(Silence(event["ts_ms"], None))


def slow_acks(events: Iterable[Event], count: int) -> SlowAcks:
    """Return what the events tell of the `count` slowest acks=all requests."""
    result = SlowAcks(count)
    for event in events:
        result.add(event)
    return result
