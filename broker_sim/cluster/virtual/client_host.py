"""A host of clients in virtual time, which can be cut off; Kafka has no counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from broker_sim.runtime.virtual.network import Network


class ClientHost:
    """A host by name: what runs inside `with` is a program on it, and so are the tasks made there.

    `disconnect` may come at any time, also before the block or after it.
    """

    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self._network = network
        self._entered: list[AbstractContextManager[None]] = []

    def disconnect(self) -> None:
        """Cut the host off from everything: bytes wait, as TCP does, until `reconnect`."""
        self._network.cut(self.name, ANY)
        self._network.cut(ANY, self.name)

    def reconnect(self) -> None:
        """Undo `disconnect`; what was held back arrives."""
        self._network.mend(self.name, ANY)
        self._network.mend(ANY, self.name)

    def __enter__(self) -> Self:
        inside = self._network.on_host(self.name)
        inside.__enter__()
        self._entered.append(inside)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop().__exit__(None, None, None)
