"""The schedule of a random run: all that is done to a cluster and when, as data.

A schedule is drawn from its seed before anything runs. So it can be printed, edited, run again, and
made smaller while the run still fails.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.runtime.links import CONTROLLER_ID

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ACKS_ALL",
    "CONTROLLER",
    "DEFAULT_DURATION_MS",
    "FLUSHED",
    "LYING",
    "MEMORY",
    "UNFLUSHED",
    "Action",
    "Producer",
    "Schedule",
    "draw_schedule",
]

CONTROLLER: Final = CONTROLLER_ID
"""The controller as an end of a link."""
ACKS_ALL: Final = -1
MEMORY: Final = "memory"
FLUSHED: Final = "flushed"
UNFLUSHED: Final = "unflushed"
LYING: Final = "lying"
DEFAULT_DURATION_MS: Final = 6_000

_HOUR_MS: Final = 3_600_000
_DURATIONS_MS: Final = (50, 300, 1_000, 2_000, 3_000)
_DELAYS_MS: Final = (5, 40, 400)
_TRANSACTIONAL: Final[tuple[tuple[int, ...], ...]] = ((), (), (0,), (0, 0), (0, 1), (0, 0, 1))
_CONSUMER_MEMBERS: Final = (0, 0, 0, 2, 3, 4)
_CLOCK_SHIFTS_MS: Final = (-2 * _HOUR_MS, -1_000, 1_000, 2 * _HOUR_MS)


class Action(NamedTuple):
    """Something that is done at `at_ms` and undone `for_ms` later.

    | kind | on | value |
    |---|---|---|
    | `pause`, `kill`, `stop` | the broker; it is resumed or started again | |
    | `isolate` | the broker: cut off from the other brokers and the controller | |
    | `cut` | two nodes: the second does not hear the first; a node is a broker or `CONTROLLER` | |
    | `slow` | two nodes, as above | delay in ms |
    | `cut_requests` | the broker does not hear its clients | |
    | `cut_responses` | its clients do not hear the broker | |
    | `shift_clock` | the broker's wall clock jumps, and later jumps back | ms |
    | `lose_power` | brokers, which lose what is not flushed; they are started again | |
    | `transfer` | partition and broker, which shall lead it; not undone | |
    | `move_group` | the broker, which shall coordinate the groups; not undone | |
    | `move_transactions` | the broker, which shall coordinate the transactions; not undone | |

    What does not fit the state of the cluster by then, such as to pause a dead broker, is not done.
    """

    at_ms: int
    kind: str
    on: tuple[int, ...]
    for_ms: int = 0
    value: int = 0


class Producer(NamedTuple):
    """One producer; an idempotent one sends each batch until it is acknowledged, in order."""

    acks: int = ACKS_ALL
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run: the topic, its clients, and the actions in the order of their time."""

    seed: int
    brokers: int = 3
    partitions: int = 1
    replication_factor: int = 3
    min_insync_replicas: int = 2
    unclean_elections: bool = False
    producers: tuple[Producer, ...] = (Producer(),)
    consumers: int = 1
    group_members: int = 0
    """Members of one group, which share the partitions."""
    consumer_members: int = 0
    """Members of another group, which speak the consumer protocol (KIP-848)."""
    transactional: tuple[int, ...] = ()
    """For each transactional producer the number of its transactional id; those with the same id fence
    each other."""
    transaction_version: int = 2
    """The level of `transaction.version`, which says how transactional producers speak: 1 or 2."""
    disk: str = MEMORY
    """Where logs are kept: `MEMORY`, or simulated disks: `FLUSHED` on each append, `UNFLUSHED`, or `LYING`."""
    sync_ms: int = 0
    """How long a flush takes at most."""
    max_latency_ms: int = 0
    duration_ms: int = DEFAULT_DURATION_MS
    actions: tuple[Action, ...] = ()

    @property
    def may_lose_records(self) -> bool:
        """Whether a power loss may take what was acknowledged."""
        return self.disk in {UNFLUSHED, LYING}


def draw_schedule(
    seed: int, *, duration_ms: int = DEFAULT_DURATION_MS, power_loss: bool = False
) -> Schedule:
    """Return the schedule that follows from the seed; no two faults know of each other.

    With `power_loss` it is the same one on simulated disks, with power losses; where they may take what
    was acknowledged, without groups and transactions.
    """
    rng = random.Random(f"{seed}/schedule")
    brokers = rng.choice((3, 3, 3, 4))
    partitions = rng.randint(1, 3)
    actions: list[Action] = []
    while not actions or (len(actions) < 12 and rng.random() < 0.8):
        actions += _draw_actions(rng, brokers, partitions, duration_ms)
    # Numbers of its own, so that a seed does to the partitions what it did without a group.
    group_rng = random.Random(f"{seed}/group")
    group_members = group_rng.choice((0, 0, 2, 3, 5))
    if group_members:
        actions += _draw_moves(group_rng, "move_group", brokers, duration_ms)
    schedule = Schedule(
        seed,
        brokers=brokers,
        partitions=partitions,
        replication_factor=rng.choice((1, 2, 3, 3, 3, 3)),
        min_insync_replicas=rng.choice((1, 2, 2, 2, 3)),
        unclean_elections=rng.random() < 0.2,
        producers=(
            Producer(idempotent=rng.random() < 0.5),
            *(_draw_producer(rng) for _ in range(rng.randint(0, 2))),
        ),
        consumers=rng.randint(0, 2),
        group_members=group_members,
        max_latency_ms=rng.choice((0, 0, 5, 20)),
        duration_ms=duration_ms,
        actions=tuple(sorted(actions)),
    )
    schedule = _with_consumer_members(schedule)
    if not schedule.unclean_elections:
        schedule = _with_transactions(schedule)
    return _with_power_losses(schedule) if power_loss else schedule


def _with_consumer_members(schedule: Schedule) -> Schedule:
    """Add members of a group of the consumer protocol, or none."""
    rng = random.Random(f"{schedule.seed}/consumers")
    members = rng.choice(_CONSUMER_MEMBERS)
    if not members:
        return schedule
    moves = _draw_moves(rng, "move_group", schedule.brokers, schedule.duration_ms)
    actions = tuple(sorted((*schedule.actions, *moves)))
    return replace(schedule, consumer_members=members, actions=actions)


def _with_transactions(schedule: Schedule) -> Schedule:
    """Add transactional producers, or none. Unclean elections may lose a marker, so they have none."""
    rng = random.Random(f"{schedule.seed}/transactions")
    transactional = rng.choice(_TRANSACTIONAL)
    if not transactional:
        return schedule
    moves = _draw_moves(rng, "move_transactions", schedule.brokers, schedule.duration_ms)
    return replace(
        schedule,
        transactional=transactional,
        transaction_version=rng.choice((1, 2)),
        actions=tuple(sorted((*schedule.actions, *moves))),
    )


def _with_power_losses(schedule: Schedule) -> Schedule:
    """Put the logs on simulated disks, and let one, some or all brokers lose their power."""
    rng = random.Random(f"{schedule.seed}/power")
    brokers = range(1, schedule.brokers + 1)
    losses = []
    for _ in range(rng.randint(1, 3)):
        at_ms = rng.randrange(0, schedule.duration_ms, 10)
        for_ms = min(rng.choice(_DURATIONS_MS), schedule.duration_ms - at_ms)
        count = rng.choice((1, rng.choice(brokers), schedule.brokers))
        losses.append(
            Action(at_ms, "lose_power", tuple(sorted(rng.sample(brokers, count))), for_ms)
        )
    schedule = replace(
        schedule,
        disk=rng.choice((FLUSHED, FLUSHED, FLUSHED, UNFLUSHED, UNFLUSHED, LYING)),
        # With slow flushes a coordinator that is started within its old session may send markers of what only
        # its own log has; the next one's are refused then, and the transaction never ends, as in Kafka.
        sync_ms=0 if schedule.transactional else rng.choice((0, 0, 1, 3)),
        actions=tuple(sorted((*schedule.actions, *losses))),
    )
    if not schedule.may_lose_records:
        return schedule
    return replace(
        schedule,
        group_members=0,
        consumer_members=0,
        transactional=(),
        actions=tuple(each for each in schedule.actions if not each.kind.startswith("move_")),
    )


def _draw_producer(rng: random.Random) -> Producer:
    return rng.choice((Producer(), Producer(), Producer(idempotent=True), Producer(1), Producer(0)))


def _draw_moves(rng: random.Random, kind: str, brokers: int, duration_ms: int) -> list[Action]:
    """Return when coordinators change, although nothing has failed."""
    return [
        Action(rng.randrange(0, duration_ms, 10), kind, (rng.randint(1, brokers),))
        for _ in range(rng.randint(0, 2))
    ]


def _draw_actions(
    rng: random.Random, brokers: int, partitions: int, duration_ms: int
) -> list[Action]:
    """Return one action, or the same one on several brokers at the same moment."""
    at_ms = rng.randrange(0, duration_ms, 10)
    for_ms = min(rng.choice(_DURATIONS_MS), duration_ms - at_ms)
    kind, draw = rng.choice(_KINDS)
    if kind == "transfer":
        return [Action(at_ms, kind, (rng.randrange(partitions), rng.randint(1, brokers)))]
    value = rng.choice(_VALUES_MS[kind]) if kind in _VALUES_MS else 0
    if draw is _broker and rng.random() < 0.35:
        # A minority or a majority, even all, at once.
        together = rng.sample(range(1, brokers + 1), rng.randint(2, brokers))
        return [Action(at_ms, kind, (broker,), for_ms, value) for broker in sorted(together)]
    return [Action(at_ms, kind, draw(rng, brokers), for_ms, value)]


def _broker(rng: random.Random, brokers: int) -> tuple[int, ...]:
    return (rng.randint(1, brokers),)


def _link(rng: random.Random, brokers: int) -> tuple[int, ...]:
    source, target = rng.sample((CONTROLLER, *range(1, brokers + 1)), 2)
    return source, target


_KINDS: Final[tuple[tuple[str, Callable[[random.Random, int], tuple[int, ...]]], ...]] = (
    ("pause", _broker),
    ("pause", _broker),
    ("kill", _broker),
    ("kill", _broker),
    ("stop", _broker),
    ("isolate", _broker),
    ("cut", _link),
    ("cut", _link),
    ("slow", _link),
    ("cut_requests", _broker),
    ("cut_responses", _broker),
    ("shift_clock", _broker),
    ("transfer", _broker),
    ("transfer", _broker),
)
_VALUES_MS: Final = {"slow": _DELAYS_MS, "shift_clock": _CLOCK_SHIFTS_MS}
