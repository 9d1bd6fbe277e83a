"""The topics of a topology cannot be used as they are; mirrors `TopicConfigurationException`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.group.streams.status import Status


class TopicConfigurationError(Exception):
    """Tasks are assigned once this is mended. `status` and the text tell members what is wrong."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
