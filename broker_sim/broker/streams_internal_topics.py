"""Internal topics of Kafka Streams applications, which a broker creates for their groups.

Mirrors the streams part of `AutoTopicCreationManager` and its `ExpiringErrorCache`: the error of a failed
creation is cached for a while, and until it expires the creation is not retried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.controller import CreatableTopic
from broker_sim.errors import ERROR_TEXTS
from broker_sim.handlers.support.forwarding import forward
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.scala_order import to_map_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.controller import CreateTopicResult, Outcome
    from broker_sim.handlers.context import BrokerServices
    from broker_sim.protocol import messages

MAX_ERRORS: Final = 1_000
"""Maximum number of cached errors; beyond it the one that expires first is dropped."""


class _Failure(NamedTuple):
    text: str
    until_ms: int


class StreamsInternalTopics:
    """Creates the internal topics of one broker's streams groups, and caches the errors of failed creations.

    Thread rule: the broker's loop.
    """

    def __init__(self, broker: BrokerServices) -> None:
        self._broker = broker
        self._in_flight: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    def _now_ms(self) -> int:
        return self._broker.clock.wall_clock_ms()

    def create(
        self, topics: Mapping[str, messages.CreateTopicsRequest.CreatableTopic], keeps_errors_ms: int
    ) -> dict[str, str]:
        """Create the topics, except those in progress and those that failed within the last `keeps_errors_ms`.

        Returns the error messages of these failures by name, in the order of Kafka's map.
        """
        skipped = {**self._known_failures(), **dict.fromkeys(self._in_flight)}
        new_topics = [
            CreatableTopic(
                topic.name,
                topic.num_partitions,
                topic.replication_factor,
                configs={config.name: config.value for config in topic.configs},
            )
            for topic in topics.values()
            if topic.name not in skipped
        ]
        if new_topics:
            self._create(new_topics, keeps_errors_ms)
        failures = self._known_failures()
        failed = to_map_order([name for name in topics if name in failures], string_hash)
        return {name: failures[name].text for name in failed}

    def _create(self, new_topics: Sequence[CreatableTopic], keeps_errors_ms: int) -> None:
        names = [topic.name for topic in new_topics]
        self._in_flight.update(names)

        def created(results: Sequence[CreateTopicResult]) -> None:
            self._in_flight.difference_update(names)
            for result in results:
                if not result.outcome.ok:
                    self._keep(result.name, _text_of(result.outcome), keeps_errors_ms)

        def refused(outcome: Outcome) -> None:
            self._in_flight.difference_update(names)
            for name in names:
                self._keep(name, _text_of(outcome), keeps_errors_ms)

        forward(
            self._broker,
            self._broker.config.request_timeout_ms,
            lambda controller: controller.create_topics(new_topics, validate_only=False),
            created,
            refused,
        )

    def _known_failures(self) -> dict[str, _Failure]:
        now_ms = self._now_ms()
        return {name: failure for name, failure in self._failures.items() if failure.until_ms > now_ms}

    def _keep(self, name: str, text: str, keeps_ms: int) -> None:
        self._failures = self._known_failures()
        self._failures[name] = _Failure(text, self._now_ms() + keeps_ms)
        if len(self._failures) > MAX_ERRORS:
            first = min(self._failures, key=lambda topic: self._failures[topic].until_ms)
            del self._failures[first]


def _text_of(outcome: Outcome) -> str:
    return outcome.error_message or ERROR_TEXTS[outcome.error_code]
