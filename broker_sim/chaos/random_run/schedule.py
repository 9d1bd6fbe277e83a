"""The schedule of a random run: its cluster, clients and faults, as data.

A schedule is drawn from its seed before the run starts, so it can be printed, edited, repeated and shrunk. Faults are
drawn in `drawing`, independently of the clients; each run leaves out some kinds of clients.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker_sim.chaos.faults.action import GROUPS, TRANSACTIONS, Action, broker_names
from broker_sim.chaos.faults.plots import FAULT_DURATIONS_MS, FaultScope
from broker_sim.chaos.faults.schedule import FaultSchedule
from broker_sim.chaos.random_run.drawing import draw_faults
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC: Final = "topic"
"""The topic all clients use."""
MEMORY: Final = "memory"
FLUSHED: Final = "flushed"
UNFLUSHED: Final = "unflushed"
LYING: Final = "lying"
DEFAULT_DURATION_MS: Final = 4_000
"""Duration of drawn schedules."""

_TRANSACTIONAL: Final[tuple[tuple[int, ...], ...]] = ((0,), (0, 0), (0, 1), (0, 0, 1))


IDEMPOTENT: Final = "idempotent"
"""A producer that repeats each batch until it is acknowledged, in order."""
ACKS: Final = {"acks_all": ACKS_ALL, IDEMPOTENT: ACKS_ALL, "acks_1": 1, "acks_0": 0}
"""The kinds of producers, and their acks."""
_PRODUCERS: Final = (
    "acks_all", "acks_all", IDEMPOTENT, IDEMPOTENT, "acks_1", "acks_1", "acks_0",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule(FaultSchedule):
    """One run, with its topic and its clients."""

    CHOICES: ClassVar = MappingProxyType({"producers": tuple(ACKS), "disk": (MEMORY, FLUSHED, UNFLUSHED, LYING)})

    duration_ms: int = 6_000
    partitions: int = 1
    replication_factor: int = 3
    min_insync_replicas: int = 2
    unclean_elections: bool = False
    producers: tuple[str, ...] = ("acks_all",)
    """The kind of each producer, one of `ACKS`."""
    consumers: int = 1
    group_members: int = 0
    """Number of members of a classic group."""
    consumer_members: int = 0
    """Number of members of a group of the consumer protocol (KIP-848)."""
    streams_members: int = 0
    """Number of members of a streams group (KIP-1071)."""
    share_members: int = 0
    """Number of members of a share group with a dead-letter queue (KIP-1191)."""
    transactional: tuple[int, ...] = ()
    """Number of the transactional id of each transactional producer; producers with the same id fence
    each other."""
    transaction_version: int = 2
    """The level of `transaction.version`, 1 or 2."""
    disk: str = MEMORY
    """Storage of logs: `MEMORY`, or simulated disks: `FLUSHED` on each append, `UNFLUSHED`, or `LYING`."""
    sync_ms: int = 0
    """Maximum duration of a flush in ms."""

    @property
    def has_groups(self) -> bool:
        """Whether it has group members of any protocol."""
        return bool(self.group_members or self.consumer_members or self.streams_members or self.share_members)

    @property
    def may_lose_records(self) -> bool:
        """Whether a power failure may lose acknowledged records."""
        return self.disk in {UNFLUSHED, LYING}


def draw_schedule(seed: int, *, duration_ms: int = DEFAULT_DURATION_MS, power_loss: bool = False) -> Schedule:
    """Return the schedule of a seed.

    With `power_loss` it is the same schedule on simulated disks, with power failures; if these may lose acknowledged
    records, it has no groups and transactions.
    """
    rng = random.Random(f"{seed}/schedule")
    clients = [draw for share, draw in _CLIENTS if rng.random() < share] or [_log_clients]
    schedule = Schedule(
        seed,
        brokers=rng.choice((3, 3, 3, 4)),
        partitions=rng.choice((1, 1, 2, 3)),
        replication_factor=rng.choice((1, 2, 3, 3, 3, 3, 3, 3)),
        min_insync_replicas=rng.choice((1, 2, 2, 2, 3)),
        producers=(),
        consumers=0,
        latency_ms=rng.choice((0, 0, 5, 20)),
        duration_ms=duration_ms,
    )
    for draw in clients:
        schedule = replace(schedule, **draw(rng))
    # A random stream of its own, so that streams members do not change other clients.
    streams = random.Random(f"{seed}/streams")
    if streams.random() < STREAMS_SHARE:
        schedule = replace(schedule, streams_members=streams.choice((2, 3, 4)))
    share = random.Random(f"{seed}/share")
    if share.random() < SHARE_SHARE:
        producers = schedule.producers or ("acks_all",)
        schedule = replace(schedule, share_members=share.choice((1, 2, 3)), producers=producers)
    coordinators = [GROUPS] if schedule.has_groups else []
    if schedule.transactional:
        coordinators.append(TRANSACTIONS)
    elif rng.random() < UNCLEAN_SHARE:
        # Not with transactions: an unclean election may lose a marker.
        # Nor with a share group, whose rejected records may be lost.
        schedule = replace(schedule, unclean_elections=not schedule.share_members)
    # A random stream of its own, so that clients do not change the faults.
    faults = random.Random(f"{seed}/faults")
    scope = FaultScope(schedule.brokers, schedule.partitions, duration_ms, tuple(coordinators))
    schedule = replace(schedule, actions=tuple(draw_faults(faults, scope)))
    return _with_power_losses(schedule) if power_loss else schedule


def _log_clients(rng: random.Random) -> dict[str, Any]:
    producers = tuple(rng.choice(_PRODUCERS) for _ in range(rng.randint(1, 3)))
    return {"producers": producers, "consumers": rng.randint(0, 2)}


def _transactional_producers(rng: random.Random) -> dict[str, Any]:
    ids = rng.choice(_TRANSACTIONAL)
    return {"transactional": ids, "transaction_version": rng.choice((1, 2))}


_CLIENTS: Final[tuple[tuple[float, Callable[[random.Random], dict[str, Any]]], ...]] = (
    (0.6, _log_clients),
    (0.3, lambda rng: {"group_members": rng.choice((2, 3, 5))}),
    (0.25, lambda rng: {"consumer_members": rng.choice((2, 3, 4))}),
    (0.4, _transactional_producers),
)
"""The share of runs with each kind of client, and a function that draws its fields."""
STREAMS_SHARE: Final = 0.2
SHARE_SHARE: Final = 0.15
UNCLEAN_SHARE: Final = 0.15


def _with_power_losses(schedule: Schedule) -> Schedule:
    """Put the logs on simulated disks, and add power failures of one, some or all brokers."""
    rng = random.Random(f"{schedule.seed}/power")
    brokers = broker_names(schedule.brokers)
    losses = []
    for _ in range(rng.randint(1, 3)):
        at_ms = rng.randrange(0, schedule.duration_ms, 10)
        for_ms = min(rng.choice(FAULT_DURATIONS_MS), schedule.duration_ms - at_ms)
        count = rng.choice((1, rng.randint(1, schedule.brokers), schedule.brokers))
        losses.append(Action(at_ms, "lose_power", tuple(sorted(rng.sample(brokers, count))), for_ms))
    schedule = replace(
        schedule,
        disk=rng.choice((FLUSHED, FLUSHED, FLUSHED, UNFLUSHED, UNFLUSHED, LYING)),
        sync_ms=rng.choice((0, 0, 1, 3)),
        actions=tuple(sorted((*schedule.actions, *losses))),
    )
    if not schedule.may_lose_records:
        return schedule
    return replace(
        schedule,
        group_members=0,
        consumer_members=0,
        streams_members=0,
        share_members=0,
        transactional=(),
        actions=tuple(each for each in schedule.actions if not each.kind.startswith("move_")),
    )
