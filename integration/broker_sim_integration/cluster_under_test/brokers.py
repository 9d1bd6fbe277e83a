"""The three brokers by their roles, which are equal on both sides although broker ids may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Brokers:
    """Three brokers; iterating yields their broker ids, `first` first."""

    first: int
    """The broker with the active controller, if one of the brokers has it; no fault hits it."""
    second: int
    third: int
    addresses: Mapping[int, tuple[str, int]]

    @classmethod
    def of(cls, addresses: Mapping[int, tuple[str, int]], controller_broker: int | None) -> Self:
        """Return the brokers with these addresses; `first` is the one with the controller."""
        first = min(addresses) if controller_broker is None else controller_broker
        second, third = (broker for broker in sorted(addresses) if broker != first)
        return cls(first, second, third, addresses)

    def __iter__(self) -> Iterator[int]:
        return iter((self.first, self.second, self.third))

    def address(self, broker: int) -> tuple[str, int]:
        """Return the host and port of a broker."""
        return self.addresses[broker]

    def role(self, broker: int) -> str:
        """Return the role of a broker id: `none` for -1, `unknown` for an id of no broker."""
        roles = {self.first: "first", self.second: "second", self.third: "third", -1: "none"}
        return roles.get(broker, "unknown")

    def roles(self, brokers: Iterable[int]) -> list[str]:
        """Return the roles of several brokers, sorted."""
        return sorted(self.role(broker) for broker in brokers)
