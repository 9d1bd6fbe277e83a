"""The progress of a member's copies of tasks; mirrors `MemberTaskOffsets` of Kafka 4.4 (KIP-1071).

Every `task.offset.interval.ms`, a member reports for each task the sum of its changelog offsets and the sum of their
end offsets. The assignor prefers the member with the highest offset of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_sim.group.request_checks import invalid_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.protocol import messages

    Reported = Iterable[messages.StreamsGroupHeartbeatRequest.TaskOffset]

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Offsets by subtopology and partition."""


@dataclass(frozen=True, slots=True)
class TaskOffsets:
    """The last report of one member."""

    offsets: Offsets = field(default_factory=dict)
    end_offsets: Offsets = field(default_factory=dict)

    def updated(self, offsets: Reported | None, end_offsets: Reported | None) -> TaskOffsets:
        """Return the report updated by a heartbeat; None keeps the previous values.

        Raises `ApiError` INVALID_REQUEST for a duplicate task.
        """
        return TaskOffsets(
            self.offsets if offsets is None else _by_task(offsets),
            self.end_offsets if end_offsets is None else _by_task(end_offsets),
        )


NO_OFFSETS: Final = TaskOffsets()


def _by_task(reported: Reported) -> Offsets:
    offsets: dict[str, dict[int, int]] = {}
    for task in reported:
        partition_offsets = offsets.setdefault(task.subtopology_id, {})
        if task.partition in partition_offsets:
            raise invalid_request(
                f"Task offsets contain a duplicate entry for subtopology {task.subtopology_id} and partition "
                f"{task.partition}."
            )
        partition_offsets[task.partition] = task.offset
    return offsets
