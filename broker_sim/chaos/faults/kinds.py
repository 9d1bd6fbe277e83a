"""The kinds of faults: their targets, values, durations and weights.

| kind | on | what happens | value |
|---|---|---|---|
| `crash` | worker | killed; started again when the fault is over | |
| `slow_start` | worker | killed; until the fault is over each start takes longer | seconds |
| `freeze` | worker | paused, as with SIGSTOP | |
| `cut` | worker, and a broker or `brokers` | nothing passes | `both`, `to` or `from` the brokers |
| `slow` | worker | messages to and from it take longer | ms |
| `fail` | worker | `depend` raises ConnectionError; a program's `DEPENDENCY_URL` does not answer | |
| `clock` | worker | its wall clock is off | seconds |
| `deploy` | `workers`, or one worker | asked to stop, after 10 s killed; its next version starts | `rolling`, `all` |
| `scale` | `workers` | more workers, or fewer with a minus, until the fault is over | number |
| `pause` | broker | paused, as with SIGSTOP | |
| `kill` | broker | killed, started again when the fault is over | |
| `stop` | broker | stopped as for a roll, started again when the fault is over | |
| `roll` | `brokers`, or one broker | restarted one after the other, each when the last is in sync again | |
| `full_disk` | broker | producers are refused with KAFKA_STORAGE_ERROR; then it halts, until the fault is over | |
| `slow_disk` | broker | waits for its disk repeatedly, each time this long | ms |
| `shift_clock` | broker | its wall clock is off | ms |
| `isolate` | broker | cut off from the other brokers and the controller | |
| `deaf` | broker | does not hear clients | |
| `mute` | broker | clients do not hear it | |
| `unreachable` | broker | nothing passes between it and clients | |
| `lag` | broker | messages to and from other brokers take longer | ms |
| `cut_link` | two nodes | the second does not hear the first | |
| `slow_link` | two nodes | messages from the first to the second take longer | ms |
| `lose_power` | brokers | lose what is not flushed, and start again | |
| `transfer` | broker | leads a partition of a topic that the test made | number of the partition |
| `move_groups` | broker | becomes the coordinator of groups | |
| `move_transactions` | broker | becomes the coordinator of transactions | |
| `rebalance` | `brokers` | a member is removed from each group, as an admin client does | number of the member |
| `error` | `brokers`, or one broker | some requests are answered with an error | API/ERROR |
| `lose` | `brokers`, or one broker | some requests are done, and their answers are lost | API |
| `delay` | `brokers`, or one broker | some requests are answered late | API/ms |
| `hold` | `brokers`, or one broker | some requests reach the broker when the fault is over | API |
| `damage` | `brokers`, or one broker | some fetches get a wrong checksum, or a part of a batch | `crc` or `cut` |

Brokers are named by number, or by the role that they have at that moment: `leader`, `follower`, `third`, `groups`,
`transactions` (see `action`). A node is a broker, or `controller`. A fault that the state of the cluster does not
allow, such as pausing a dead broker, does not happen.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from broker_sim.chaos.faults.action import BROKERS, CONTROLLER, WORKERS, Action, broker_names

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

GRID_MS: Final = 10
"""Faults begin at multiples of this time."""

_APIS_LOST: Final = (
    "Produce", "Fetch", "OffsetCommit", "JoinGroup", "SyncGroup", "AddPartitionsToTxn",
    "TxnOffsetCommit", "EndTxn", "InitProducerId",
)  # fmt: skip
_ERRORS: Final = (
    "Produce/NOT_LEADER_OR_FOLLOWER",
    "Produce/NOT_ENOUGH_REPLICAS",
    "Produce/REQUEST_TIMED_OUT",
    "Fetch/NOT_LEADER_OR_FOLLOWER",
    "Metadata/LEADER_NOT_AVAILABLE",
    "FindCoordinator/COORDINATOR_NOT_AVAILABLE",
    "OffsetCommit/NOT_COORDINATOR",
    "OffsetCommit/COORDINATOR_LOAD_IN_PROGRESS",
    "Heartbeat/NOT_COORDINATOR",
    "Heartbeat/REBALANCE_IN_PROGRESS",
    "Heartbeat/UNKNOWN_MEMBER_ID",
    "InitProducerId/NOT_COORDINATOR",
    "TxnOffsetCommit/COORDINATOR_LOAD_IN_PROGRESS",
    "EndTxn/CONCURRENT_TRANSACTIONS",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of action, and how it is drawn."""

    on: Literal["worker", "workers", "broker", "brokers", "link"]
    weight: float = 1
    """Weight with which it is drawn for applications; with 0 it happens only if it is named."""
    lasts: bool = True
    """Whether it has a duration."""
    values: tuple[str, ...] = ()
    """The values to draw from; () for a kind without a value."""
    has_far_end: bool = False
    """Whether the second target is the far end of the cut: a broker, or `brokers`."""
    several: bool = False
    """Whether the action may name several targets."""
    beside_a_command: bool = True
    """Whether it is possible in real time, on a cluster of sockets or a command."""

    @property
    def is_of_workers(self) -> bool:
        """Whether it affects the programs that use the cluster."""
        return self.on in {"worker", WORKERS}

    @property
    def at_least(self) -> int:
        """Minimum number of targets."""
        return 2 if self.on == "link" else 1


KINDS: Final[Mapping[str, Kind]] = {
    "crash": Kind("worker", 3, beside_a_command=False),
    "slow_start": Kind("worker", 0.5, values=("2", "8"), beside_a_command=False),
    "freeze": Kind("worker", 2, beside_a_command=hasattr(os, "killpg")),  # Windows stops no processes
    "cut": Kind("worker", 2, values=("both", "both", "to", "from"), has_far_end=True, beside_a_command=False),
    "slow": Kind("worker", 1, values=("50", "300", "2000"), beside_a_command=False),
    "fail": Kind("worker", 2, beside_a_command=False),
    "clock": Kind("worker", 0.5, values=("-3600", "-2", "2", "3600"), beside_a_command=False),
    "deploy": Kind("workers", 1, lasts=False, values=("rolling", "all"), beside_a_command=False),
    "scale": Kind("workers", 0, values=("1", "-1"), beside_a_command=False),
    "pause": Kind("broker", 1),
    "kill": Kind("broker", 1),
    "stop": Kind("broker", 1),
    "roll": Kind("brokers", 0.5, lasts=False),
    "full_disk": Kind("broker", 0.5),
    "slow_disk": Kind("broker", 0.5, values=("20", "200", "1000")),
    "shift_clock": Kind("broker", 0.25, values=("-3600000", "-2000", "2000", "3600000")),
    "isolate": Kind("broker", 0.5),
    "deaf": Kind("broker", 0.5, beside_a_command=False),
    "mute": Kind("broker", 0.5, beside_a_command=False),
    "unreachable": Kind("broker", 0.5),
    "lag": Kind("broker", 0.5, values=("50", "300")),
    "transfer": Kind("broker", 2, lasts=False, values=tuple(map(str, range(8)))),
    "move_groups": Kind("broker", 1, lasts=False),
    "move_transactions": Kind("broker", 1, lasts=False),
    "rebalance": Kind("brokers", 1, lasts=False, values=("0", "1", "2", "3")),
    "error": Kind("brokers", 1, values=_ERRORS),
    "lose": Kind("brokers", 1, values=_APIS_LOST),
    "delay": Kind("brokers", 0.5, values=("Produce/400", "Fetch/400", "OffsetCommit/2000")),
    "hold": Kind("brokers", 0, values=("OffsetCommit", "EndTxn", "Produce", "TxnOffsetCommit", "JoinGroup")),
    "damage": Kind("brokers", 0, values=("crc", "cut")),
    "cut_link": Kind("link", 0),
    "slow_link": Kind("link", 0, values=("5", "40", "400")),
    "lose_power": Kind("broker", 0, several=True, beside_a_command=False),
}


ON_REQUESTS: Final = ("error", "lose", "delay", "hold", "damage")
"""The kinds that affect requests of clients."""


def draw_action(
    rng: random.Random, name: str, *, brokers: int, duration_ms: int, durations_ms: Sequence[int], workers: int = 0
) -> Action:
    """Draw the time, the targets and the value of an action of that kind; it ends within the run."""
    kind = KINDS[name]
    at_ms = rng.randrange(0, duration_ms, GRID_MS)
    for_ms = min(rng.choice(durations_ms), duration_ms - at_ms) if kind.lasts else 0
    names = broker_names(brokers)
    if kind.several:
        count = rng.choice((1, rng.randint(1, brokers), brokers))
        on = sorted(rng.sample(names, count))
    elif kind.on == "link":
        on = rng.sample((CONTROLLER, *names), 2)
    elif kind.on in {BROKERS, WORKERS}:
        on = [kind.on]
    else:
        count = workers if kind.on == "worker" else brokers
        on = [f"{kind.on}-{rng.randint(1, count)}"]
    if kind.has_far_end:
        on.append(rng.choice((BROKERS, BROKERS, f"broker-{rng.randint(1, brokers)}")))
    value = rng.choice(kind.values) if kind.values else ""
    return Action(at_ms, name, tuple(on), for_ms, value)
