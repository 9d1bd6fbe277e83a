"""The task assignor of streams groups. Kafka's coordinator has one, `StickyTaskAssignor`.

Deliberate difference: Kafka's `MockAssignor` is left out, because no broker uses it.
"""

from __future__ import annotations

from broker_sim.group.streams.assignors.spec import (
    GroupSpec,
    MemberSpec,
    SubtopologyTasks,
    TaskId,
    TopologyDescriber,
)
from broker_sim.group.streams.assignors.sticky import assign

__all__ = ["GroupSpec", "MemberSpec", "SubtopologyTasks", "TaskId", "TopologyDescriber", "assign"]
