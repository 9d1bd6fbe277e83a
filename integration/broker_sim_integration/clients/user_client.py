"""The client library that users have, confluent-kafka, with one timed record at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from broker_sim_integration.clients.stopwatch import now_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim_integration.clients.topics import Topic

FLUSH_TIMEOUT_S = 60.0
WARM_UP_TIMEOUT_S = 10.0
UNKNOWN_OFFSET = -1001


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery report of one record; the offset is None if it is unknown."""

    error_code: int
    offset: int | None
    elapsed_ms: float
    answered_ms: float


class UserProducer:
    """A producer without retries and without linger, so that one record is one request."""

    def __init__(self, bootstrap_servers: str, configs: Mapping[str, str | int]) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "retries": 0,
                "linger.ms": 0,
                "socket.nagle.disable": True,
                "log_level": 0,
                **configs,
            }
        )

    def warm_up(self, topic: Topic) -> None:
        """Fetch the metadata of the topic, so that the first record does not wait for it."""
        self._producer.list_topics(topic.name, timeout=WARM_UP_TIMEOUT_S)

    def produce(self, topic: Topic, value: bytes, partition: int = 0) -> Delivery:
        """Send one record and wait for its delivery report."""
        reports: list[Delivery] = []

        def report(error: Any, message: Any) -> None:
            answered_ms = now_ms()
            offset = message.offset()
            reports.append(
                Delivery(
                    error_code=0 if error is None else error.code(),
                    offset=None if offset is None or offset == UNKNOWN_OFFSET else offset,
                    elapsed_ms=answered_ms - sent_ms,
                    answered_ms=answered_ms,
                )
            )

        sent_ms = now_ms()
        self._producer.produce(topic.name, value, partition=partition, on_delivery=report)
        self._producer.flush(FLUSH_TIMEOUT_S)
        return reports[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()
        self._producer.flush(1.0)


class UserConsumer:
    """A consumer with an assigned partition, without a group."""

    def __init__(self, bootstrap_servers: str, configs: Mapping[str, str | int]) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "none",
                "enable.auto.commit": False,
                "log_level": 0,
                **configs,
            }
        )

    def assign(self, topic: Topic, offset: int, partition: int = 0) -> None:
        """Assign one partition, to be read from `offset` on."""
        self._consumer.assign([TopicPartition(topic.name, partition, offset)])

    def read(self, count: int, timeout_ms: float) -> list[tuple[int, bytes]]:
        """Return offsets and values of up to `count` records that arrive within `timeout_ms`."""
        deadline_ms = now_ms() + timeout_ms
        found: list[tuple[int, bytes]] = []
        while len(found) < count and (left_ms := deadline_ms - now_ms()) > 0:
            message = self._consumer.poll(left_ms / 1000)
            if message is not None and message.error() is None:
                found.append((message.offset() or 0, message.value() or b""))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
