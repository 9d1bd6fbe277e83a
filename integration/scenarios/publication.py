"""Waiting until brokers act on a change of configuration, which they hear of some time later."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from integration.clients.admin_requests import TOPIC, describe_configs

if TYPE_CHECKING:
    from integration.stage.stage import Stage

__all__ = ["Publication"]

MARKED = "retention.ms"
FIRST_MARK = 1_000_000


class Publication:
    """Marks in the metadata log: who has read a mark has read all changes before it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._topic = stage.topic([stage.anchor])
        self._mark = FIRST_MARK

    def wait(self) -> None:
        """Return when every broker acts on all changes that were answered before.

        A broker shows a change before it acts on it, and takes in several at once; but it has
        acted on all of one round when it shows the next.
        """
        for _ in range(2):
            self._mark += 1
            self._stage.alter_topic(self._topic, retention_ms=str(self._mark))
            for broker in self._stage.brokers:
                self._stage.until(partial(self._shows_mark, broker), "a change is published")

    def _shows_mark(self, broker: int) -> bool:
        asked = (TOPIC, self._topic.name, (MARKED,))
        reply = describe_configs(self._stage.ask(broker), asked)
        return reply.message.results[0].configs[0].value == str(self._mark)
