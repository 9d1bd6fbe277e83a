"""The server-side assignors of the consumer protocol: who gets which partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.consumer.assignors.range_assignor import assign_ranges
from broker_sim.group.consumer.assignors.spec import AssignorError, GroupSpec, MemberSpec
from broker_sim.group.consumer.assignors.uniform import assign_uniformly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.group.modern.assignment import Partitions

__all__ = ["ASSIGNORS", "Assignor", "AssignorError", "GroupSpec", "MemberSpec"]

if TYPE_CHECKING:
    Assignor = Callable[[GroupSpec], Mapping[str, Partitions]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By Kafka's names; members without an entry in what an assignor returns get nothing."""
