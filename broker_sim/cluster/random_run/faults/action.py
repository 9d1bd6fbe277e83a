"""An action of a schedule: something that is done to a cluster, as data."""

from __future__ import annotations

from typing import Final, NamedTuple

from broker_sim.runtime.links import CONTROLLER_ID

__all__ = [
    "CONTROLLER",
    "FOLLOWER",
    "GROUPS",
    "LEADER",
    "NODE_NAMES",
    "THIRD",
    "TRANSACTIONS",
    "Action",
]

CONTROLLER: Final = CONTROLLER_ID
"""The controller as an end of a link."""
LEADER: Final = -2
"""Whoever leads partition 0 when the action is due."""
FOLLOWER: Final = -3
"""The first other replica of partition 0."""
THIRD: Final = -4
"""The second other replica of partition 0."""
GROUPS: Final = -5
"""Whoever coordinates the groups."""
TRANSACTIONS: Final = -6
"""Whoever coordinates the transactions."""

NODE_NAMES: Final = {
    CONTROLLER: "CONTROLLER",
    LEADER: "LEADER",
    FOLLOWER: "FOLLOWER",
    THIRD: "THIRD",
    GROUPS: "GROUPS",
    TRANSACTIONS: "TRANSACTIONS",
}
"""How nodes that are not brokers by their number are written."""


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

    A broker is named by its number, or by what it is at that moment: `LEADER`, `FOLLOWER`, `THIRD`,
    `GROUPS`, `TRANSACTIONS`. What does not fit the state of the cluster by then, such as to pause a dead
    broker, is not done.
    """

    at_ms: int
    kind: str
    on: tuple[int, ...]
    for_ms: int = 0
    value: int = 0
