"""The clusters in real time that tests ask for with the marker `kafka`, and share."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.topic_text import parse_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from broker_sim.config import GivenValue

__all__ = ["MarkedArguments", "MarkedClusters"]

AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
"""Kafka lets a new group wait 3 s for more members, which every test with a consumer would pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedArguments:
    """The arguments of one marker. Raises TypeError and ValueError, each with one line."""

    brokers: int = 3
    configs: Mapping[str, GivenValue] | None = None
    topics: Sequence[str] = ()

    @classmethod
    def from_marker(cls, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> Self:
        """Return the arguments of a marker that was called with these."""
        if args:
            raise TypeError(f"it takes keyword arguments only, not {args[0]!r}")
        allowed = [field.name for field in fields(cls)]
        for name in kwargs:
            if name not in allowed:
                raise TypeError(f"there is no argument {name!r}, only {', '.join(allowed)}")
        return cls(**kwargs)

    def __post_init__(self) -> None:
        self.cluster()  # it checks what it is given

    def cluster(self, *, with_topics: bool = True) -> Cluster:
        """Return a new cluster, not open yet."""
        topics = self.topics if with_topics else ()
        return Cluster(self.brokers, topics=topics, configs=AT_ONCE | dict(self.configs or {}))

    def key(self) -> object:
        """Return what clusters that tests can share have in common."""
        return self.brokers, frozenset((self.configs or {}).items())


class MarkedClusters:
    """Open clusters, one for each number of brokers and set of configurations; closed with this."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._open: dict[object, Cluster] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def lend(self, arguments: MarkedArguments) -> Iterator[Cluster]:
        """Give a cluster with the topics, and reset it afterwards.

        A cluster that cannot be reset is not lent again; the error is that of the test that had it.
        """
        key = arguments.key()
        cluster = self._open.get(key)
        if cluster is None:
            cluster = self._stack.enter_context(arguments.cluster(with_topics=False))
            self._open[key] = cluster
        try:
            for topic in map(parse_topic, arguments.topics):
                cluster.create_topic(*topic)
            yield cluster
        finally:
            del self._open[key]
            cluster.reset()
            self._open[key] = cluster
