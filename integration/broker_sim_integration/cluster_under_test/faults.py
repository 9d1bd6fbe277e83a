"""Faults of brokers, recorded so that they can be undone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.stopwatch import Moment, now_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.broker_verbs import BrokerVerbs

UNDONE_BY: Final = {
    "pause": "resume",
    "stop": "start",
    "kill": "start",
    "disconnect": "reconnect",
    "disconnect_clients": "reconnect_clients",
}
"""The verbs of `BrokerVerbs` that cause a fault, each with the verb that ends it."""
UNDOES: Final = {
    undo: [fault for fault, ended_by in UNDONE_BY.items() if ended_by == undo] for undo in UNDONE_BY.values()
}
END_THE_PROCESS: Final = ("stop", "kill")
ENDED_WITH_THE_PROCESS: Final = ("pause", "disconnect_clients")
CLIENTS_CANNOT_REACH: Final = ("pause", "stop", "kill", "disconnect_clients")


class _Verb:
    """A verb of `BrokerVerbs` as a method of `Faults`, which records the call."""

    def __init__(self, **options: bool) -> None:
        self._options = options

    def __set_name__(self, owner: type[Faults], name: str) -> None:
        self._name = name

    def __get__(self, faults: Faults, owner: type[Faults]) -> Callable[[int], Moment]:
        return partial(faults.call, self._name, **self._options)


class Faults:
    """The `BrokerVerbs` of a cluster; each returns the time (`now_ms`) after the call.

    Only one thread may use them.
    """

    pause = _Verb()
    resume = _Verb()
    stop = _Verb()
    kill = _Verb()
    start = _Verb(wait=False)
    disconnect = _Verb()
    reconnect = _Verb()
    disconnect_clients = _Verb()
    reconnect_clients = _Verb()

    def __init__(self, verbs: BrokerVerbs) -> None:
        self._verbs = verbs
        self._brokers_with: dict[str, set[int]] = {fault: set() for fault in UNDONE_BY}
        self._any_so_far = False

    def call(self, verb: str, broker: int, **options: bool) -> Moment:
        """Call the verb with this name; return the time after the call."""
        began_ms = now_ms()
        getattr(self._verbs, verb)(broker, **options)
        called_ms = Moment(now_ms(), began_ms=began_ms)
        if verb in UNDONE_BY:
            self._any_so_far = True
            self._brokers_with[verb].add(broker)
        else:
            for fault in UNDOES[verb]:
                self._brokers_with[fault].discard(broker)
        if verb in END_THE_PROCESS:
            for fault in ENDED_WITH_THE_PROCESS:
                self._brokers_with[fault].discard(broker)
        return called_ms

    def undo_all(self) -> None:
        """End all faults that have not ended yet."""
        for fault, undo in reversed(UNDONE_BY.items()):
            for broker in sorted(self._brokers_with[fault]):
                getattr(self, undo)(broker)

    def can_answer(self, broker: int) -> bool:
        """Whether clients get responses from a broker now."""
        return all(broker not in self._brokers_with[fault] for fault in CLIENTS_CANNOT_REACH)

    @property
    def none_now(self) -> bool:
        """Whether no broker has a fault now."""
        return not any(self._brokers_with.values())

    @property
    def any_so_far(self) -> bool:
        """Whether there has been any fault, even if it has ended."""
        return self._any_so_far
