"""What is decided of a group on the way through an operation, until that returns its `Result`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.coordinator.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ErrorCode
    from broker_sim.group.records import GroupRecord

__all__ = ["Decision"]

R = TypeVar("R")


class Decision:
    """Collects records, and timers that are set or ended when the leader has them."""

    __slots__ = ("records", "replays", "timers")

    def __init__(self) -> None:
        self.records: list[GroupRecord] = []
        self.replays = True
        """False where one of the timers makes what the records say."""
        self.timers: list[Callable[[], object]] = []

    def result(
        self, response: R | None, on_settled: Callable[[ErrorCode], object] | None = None
    ) -> Result[R]:
        """Return what the runtime has to carry out."""
        return Result(
            response,
            self.records,
            replays=self.replays,
            on_appended=self._set_timers if self.timers else None,
            on_settled=on_settled,
        )

    def _set_timers(self) -> None:
        for set_or_end in self.timers:
            set_or_end()
