"""What is done to a cluster while clients work, and when: data that follows from a seed.

A step is two verbs of the control port, one that does something and one that undoes it. What does not fit
the state of the cluster by then, such as to pause a dead broker, the cluster refuses.
"""

import random
from typing import NamedTuple

BROKERS = (1, 2, 3)
PARTITIONS = 3
TOPICS = ("input", "output", "pairs")
COORDINATORS = ("__consumer_offsets", "__transaction_state")
SHORTEST_MS, LONGEST_MS = 200, 8_000
"""A broker that is gone for longer than its session (3 s here) is fenced, and others lead."""

ERRORS = {
    "Produce": ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"),
    "Fetch": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_LEADER_EPOCH"),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "InitProducerId": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"),
    "AddPartitionsToTxn": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"),
    "AddOffsetsToTxn": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"),
    "TxnOffsetCommit": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    "EndTxn": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"),
    "OffsetFetch": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    "OffsetCommit": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    "JoinGroup": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    "SyncGroup": ("NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "Heartbeat": ("NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
}  # fmt: skip
"""By API what Kafka may answer and clients have to try again after."""


class Call(NamedTuple):
    """A verb with its arguments by name."""

    verb: str
    arguments: dict


class Step(NamedTuple):
    """Something that is done at `at_ms` and undone `for_ms` later, if it can be."""

    at_ms: int
    for_ms: int
    do: Call
    undo: Call | None = None

    def __str__(self):
        words = " ".join(f"{name}={value}" for name, value in self.do.arguments.items())
        return f"{self.at_ms / 1000:.2f} s: {self.do.verb} {words} for {self.for_ms / 1000:.2f} s"


def draw_schedule(seed, *, steps, duration_ms):
    """Return the steps that follow from the seed, in the order of their time, spread evenly."""
    rng = random.Random(f"{seed}/faults")
    kinds = (_pause, _kill, _stop, _isolate, _cut_clients, _cut_link, _slow_link, _lead) + 2 * (
        _lead_coordinator,
        _fail_requests,
        _lose_requests,
        _delay_requests,
    )
    times = sorted(rng.randrange(duration_ms) for _ in range(steps))
    return tuple(_between(rng, at_ms, min(duration_ms - at_ms, LONGEST_MS), rng.choice(kinds)) for at_ms in times)


def _between(rng, at_ms, longest_ms, kind):
    for_ms = min(longest_ms, int(SHORTEST_MS * (LONGEST_MS / SHORTEST_MS) ** rng.random()))
    do, undo = kind(rng)
    return Step(at_ms, for_ms, do, undo)


def _on_broker(rng, do, undo, **options):
    broker = {"broker_id": rng.choice(BROKERS)}
    return Call(do, broker), Call(undo, broker | options)


def _pause(rng):
    return _on_broker(rng, "pause", "resume")


def _kill(rng):
    return _on_broker(rng, "kill", "start", wait=False)


def _stop(rng):
    return _on_broker(rng, "stop", "start", wait=False)


def _isolate(rng):
    return _on_broker(rng, "disconnect", "reconnect")


def _cut_clients(rng):
    return _on_broker(rng, "disconnect_clients", "reconnect_clients")


def _link(rng, **options):
    source, target = rng.sample(BROKERS, 2)
    ends = {"source": source, "target": target}
    return Call("set_link", ends | options), Call("set_link", ends)


def _cut_link(rng):
    return _link(rng, drop=True)


def _slow_link(rng):
    return _link(rng, delay_ms=rng.choice((5, 40, 400)))


def _transfer(rng, topics):
    arguments = {"topic": rng.choice(topics), "partition": rng.randrange(PARTITIONS), "to": rng.choice(BROKERS)}
    return Call("transfer_leadership", arguments), None


def _lead(rng):
    return _transfer(rng, TOPICS)


def _lead_coordinator(rng):
    return _transfer(rng, COORDINATORS)


def _inject(rng, **effect):
    api = effect.pop("api", None) or rng.choice(tuple(ERRORS))
    return Call("inject", {"api": api, "count": rng.choice((1, 1, 3, 10)), **effect}), Call("heal", {})


def _fail_requests(rng):
    api = rng.choice(tuple(ERRORS))
    return _inject(rng, api=api, error=rng.choice(ERRORS[api]))


def _lose_requests(rng):
    return _inject(rng, lose=rng.choice(("request", "response")))


def _delay_requests(rng):
    return _inject(rng, delay_ms=rng.choice((50, 500, 3_000)))
