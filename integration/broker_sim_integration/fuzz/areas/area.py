"""An area: initial topics, and weighted draws of actions."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker_sim.protocol import messages
from broker_sim_integration.cluster_under_test.faults import UNDONE_BY
from broker_sim_integration.fuzz.sequence import Fault, Request, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Sequence as Several

    from broker_sim.protocol.schema import StructSpec
    from broker_sim_integration.fuzz.sequence import Action, TopicPlan

T = TypeVar("T")
U = TypeVar("U")
LENGTHS: Final = (12, 30)
WAVE: Final = 10
"""Number of sequences played at once in an area with faults: a fault takes seconds and affects all of them."""
FAULTS: Final = ("pause", "stop", "kill")
CONFIGS: Final = {
    # A join that waits for others takes the drawn time, without another 3 s.
    "group.initial.rebalance.delay.ms": "0",
    # On both sides one broker coordinates everything that a request names.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # The assignment of a share or streams group's member depends on the order of requests only, not on their times.
    "group.share.assignment.interval.ms": "0",
    "group.share.record.lock.duration.ms": "60000",
    "group.share.session.timeout.ms": "60000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.session.timeout.ms": "60000",
}
"""Broker configurations of all areas, so that the areas can share a cluster."""


@dataclass(frozen=True, slots=True)
class Area:
    """The material of one area's sequences."""

    name: str
    topics: tuple[TopicPlan, ...]
    draws: Mapping[Callable[[random.Random], Action | tuple[Action, ...]], int]
    """Functions that draw one action, or several related ones, with their weights."""
    lengths: tuple[int, int] = LENGTHS
    """Minimum and maximum number of draws in a sequence."""
    configs: Mapping[str, str] = field(default_factory=lambda: CONFIGS)
    """Configurations of the brokers."""
    begins: Callable[[random.Random], tuple[Action, ...]] | None = None
    """Draws the first actions of a sequence."""
    faults: bool = False
    """Whether brokers go down and come back; sequences of one wave have the same faults."""

    def draw(self, seed: int) -> Sequence:
        """Return the sequence of a seed."""
        rng = random.Random(f"{self.name}/{seed}")
        actions: list[Action] = [] if self.begins is None else list(self.begins(rng))
        actions += self._requests(rng)
        for fault in self._faults(seed):
            actions += [fault, *self._requests(rng)]
        return Sequence(self.name, seed, self.topics, tuple(actions))

    def _requests(self, rng: random.Random) -> list[Action]:
        draws = rng.choices(list(self.draws), list(self.draws.values()), k=rng.randint(*self.lengths))
        actions: list[Action] = []
        for draw in draws:
            drawn_actions = draw(rng)
            actions.extend(drawn_actions if isinstance(drawn_actions, tuple) else (drawn_actions,))
        return actions

    def _faults(self, seed: int) -> list[Fault]:
        """Return faults in which brokers go down one after the other, each with its restart.

        The first one, which may have the active controller, stays up.
        """
        if not self.faults:
            return []
        rng = random.Random(f"{self.name}/faults/{seed // WAVE}")
        faults = []
        for _ in range(rng.randint(1, 2)):
            broker, verb = rng.choice(["second", "third"]), rng.choice(FAULTS)
            faults += [Fault(verb, broker), Fault(UNDONE_BY[verb], broker)]
        return faults


def pick(rng: random.Random, pool: Several[T], others: Several[U] = (), one_in: int = 8) -> T | U:
    """Return one of the pool, or once in `one_in` draws one of the others: rare or invalid values."""
    if others and rng.randrange(one_in) == 0:
        return rng.choice(others)
    return rng.choice(pool)


def several(rng: random.Random, pool: Several[T], most: int = 2) -> list[T]:
    """Return one or several of the pool, each once."""
    distinct = list(dict.fromkeys(pool))
    return rng.sample(distinct, rng.randint(1, min(most, len(distinct))))


def once(entries: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return the entries without those that have the keys of an earlier one.

    Requests that name something twice are not tested: Kafka's response depends on the API, and no client sends
    them.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        found.setdefault(tuple(entry.get(key) for key in keys), entry)
    return list(found.values())


def request(client: str, at: str, api: str, version: int, /, **body: Any) -> Request:
    """Return a request; fields that do not exist in the version are left out."""
    message_class = getattr(messages, f"{api}Request")
    spec = message_class.SPEC.root
    return Request(client, at, api, version, _fields_in(spec, version, body))


def _fields_in(spec: StructSpec, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    fields = {one.name: one for one in spec.fields}
    for name, value in body.items():
        field = fields[name]
        if version not in field.versions:
            continue
        if value is None and version not in field.nullable_versions:
            continue
        values[name] = value
        is_reference = isinstance(value, str)  # to a value of an earlier response
        if field.struct is not None and value is not None and not is_reference:
            inner = partial(_fields_in, field.struct, version)
            values[name] = [inner(one) for one in value] if field.is_array else inner(value)
    return values
