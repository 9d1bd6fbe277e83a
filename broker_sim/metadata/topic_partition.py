"""The names of partitions, as in `org.apache.kafka.common.TopicPartition`."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic's name and the number of one of its partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
