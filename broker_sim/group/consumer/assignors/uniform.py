"""As many partitions for each member as for any other, moving few; mirrors `UniformAssignor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from broker_sim.group.consumer.assignors.uniform_homogeneous import assign_homogeneous

if TYPE_CHECKING:
    from broker_sim.group.consumer.assignors.spec import GroupSpec
    from broker_sim.group.modern.assignment import Partitions


def assign_uniformly(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the new target of every member. Raises `AssignorError` for a topic that is not there."""
    if not spec.members:
        return {}
    return assign_homogeneous(spec) if spec.homogeneous else assign_heterogeneous(spec)
