"""Places the replicas of new partitions on brokers.

Mirrors `StripedReplicaPlacer` of Kafka:

- The first replica goes to an unfenced broker; the others go to fenced brokers only if a rack has
  no unfenced broker left.
- Racks are used round-robin, and so are the brokers of a rack, from a random start. Each partition starts
  one rack after the previous one.
- After as many partitions as there are unfenced brokers, racks and brokers are shuffled, so that
  the same brokers do not always share partitions.
"""

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from broker_sim.errors import ApiError, ErrorCode


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    broker_id: int
    rack: str | None
    fenced: bool


class _BrokerList:
    """The fenced or the unfenced brokers of one rack, used round-robin."""

    __slots__ = ("_brokers", "_epoch", "_index", "_offset")

    def __init__(self, brokers: Iterable[int], rng: Random) -> None:
        self._brokers = sorted(brokers)
        self._offset = rng.randrange(len(self._brokers)) if self._brokers else 0
        self._index = 0
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        """Return the next broker for the partition `epoch`, None if all have been used."""
        if not self._brokers:
            return None
        if self._epoch != epoch:
            self._epoch = epoch
            self._index = 0
            self._offset = (self._offset + 1) % len(self._brokers)
        if self._index >= len(self._brokers):
            return None
        broker = self._brokers[(self._index + self._offset) % len(self._brokers)]
        self._index += 1
        return broker

    def shuffle(self, rng: Random) -> None:
        rng.shuffle(self._brokers)


class _Rack:
    """One rack; all of its unfenced brokers are used before fenced ones."""

    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: list[UsableBroker], rng: Random) -> None:
        self.fenced = _BrokerList((b.broker_id for b in brokers if b.fenced), rng)
        self.unfenced = _BrokerList((b.broker_id for b in brokers if not b.fenced), rng)

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class StripedReplicaPlacer:
    """Places the partitions of one topic, one after the other.

    Raises ApiError with INVALID_REPLICATION_FACTOR if no broker is unfenced or there are fewer
    brokers than replicas.
    """

    def __init__(self, brokers: Iterable[UsableBroker], rng: Random) -> None:
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        self._rng = rng
        # Brokers without a rack form one rack, which comes first.
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_rack[name], rng) for name in names]
        self._num_brokers = sum(map(len, by_rack.values()))
        self._num_unfenced = sum(not b.fenced for rack in by_rack.values() for b in rack)
        self._offset = rng.randrange(len(names)) if names else 0
        self._epoch = 0

    def place(self, num_partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
        """Return the replicas of each partition, the preferred leader first."""
        self._check(replication_factor)
        return [self._place_one(replication_factor) for _ in range(num_partitions)]

    def _check(self, replication_factor: int) -> None:
        reason = None
        if replication_factor <= 0:
            reason = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        elif not self._num_unfenced:
            reason = "All brokers are currently fenced, or have all their log directories cordoned."
        elif replication_factor > self._num_brokers:
            reason = (
                f"The target replication factor of {replication_factor} cannot be reached because"
                f" only {self._num_brokers} broker(s) are registered or some brokers have all"
                " their log directories cordoned."
            )
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)

    def _place_one(self, replication_factor: int) -> tuple[int, ...]:
        if self._epoch == self._num_unfenced > 1:
            self._shuffle()
            self._epoch = 0
        racks, count = self._racks, len(self._racks)
        self._offset %= count
        first_rack = self._offset
        while (leader := racks[first_rack].unfenced.next(self._epoch)) is None:
            first_rack = (first_rack + 1) % count
        replicas = [leader]
        rack, skip = self._offset, first_rack
        while len(replicas) < replication_factor:
            if rack == skip:
                skip = -1  # the leader was this rack's first broker
            else:
                broker = racks[rack].next(self._epoch)
                if broker is not None:
                    replicas.append(broker)
            rack = (rack + 1) % count
        self._epoch += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        self._rng.shuffle(self._racks)
        for rack in self._racks:
            rack.fenced.shuffle(self._rng)
            rack.unfenced.shuffle(self._rng)
