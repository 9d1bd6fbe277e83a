"""Finds the slowest acks=all requests of a trace, and the followers that kept them waiting.

A record sent with acks=all is acknowledged when all in-sync replicas have it. Until then its request is parked in
the leader's purgatory. Followers get records by fetches, which the leader traces too. So a follower that sent no
fetch while the request was parked kept it waiting.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.trace.reading import Event

FOLLOWER: Final = "replica-"
"""Prefix of the client ids of followers."""
SAME_MOMENT_MS: Final = 10
"""Maximum delay in ms with which a fetch may be traced after the request that it completed."""
ENDS: Final = frozenset({"completed", "expired", "cancelled"})


@dataclass
class Silence:
    """A period without a fetch from a follower to a leader; `end_ms` is None if the trace ends first."""

    begin_ms: int
    end_ms: int | None

    def within(self, begin_ms: int, end_ms: int) -> int:
        """Return the length of the overlap with this period, in ms."""
        return max(min(end_ms if self.end_ms is None else self.end_ms, end_ms) - max(self.begin_ms, begin_ms), 0)


@dataclass
class Follower:
    """The fetches of one follower to one leader."""

    broker: int
    keys: set[str] = field(default_factory=set)
    """The partitions that the follower fetches."""
    silences: list[Silence] = field(default_factory=list)
    pending: set[int] = field(default_factory=set)
    """Ids of the fetches that wait at the leader."""


@dataclass(frozen=True)
class SlowRequest:
    """An acks=all request, and the longest silence of each follower of its partitions while it waited."""

    ended_ms: int
    broker: int
    keys: tuple[str, ...]
    outcome: str
    waited_ms: int
    error_code: int
    silent_ms: Mapping[int, int]
    """Milliseconds without a fetch, by the follower's broker id."""
    has_left: frozenset[int]
    """Broker ids of the followers that were still silent when the request ended."""
    lateness_ms: int
    """Largest lateness of a timer of the leader until then, in ms."""


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
        """Process the next event of the trace."""
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
        """Return the slowest requests, the slowest first."""
        return [
            self._slow_request(event, lateness_ms) for _, _, event, lateness_ms in sorted(self._slowest, reverse=True)
        ]

    def _slow_request(self, event: Event, lateness_ms: int) -> SlowRequest:
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
    """Start a silence when the last waiting fetch is answered, and end it at the next fetch."""
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
    """Return the `count` slowest acks=all requests of these events."""
    result = SlowAcks(count)
    for event in events:
        result.add(event)
    return result
