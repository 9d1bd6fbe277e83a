"""The verbs of a broker, called through the control port of a simulator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.cluster.verbs import Verbs
from broker_sim.control.verb import verbs_of
from broker_sim_integration.broker_files import DirectoryFiles
from broker_sim_integration.simulator.errors import SimulatorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.simulator.process import SimulatorProcess

VERBS = verbs_of(Verbs)


class _Verb:
    """A verb of `BrokerVerbs` as a method, sent to the control port."""

    def __set_name__(self, owner: type[SimulatorVerbs], name: str) -> None:
        self._name = name

    def __get__(self, verbs: SimulatorVerbs, owner: type[SimulatorVerbs]) -> Callable[..., None]:
        return partial(verbs.call, self._name)


class SimulatorVerbs:
    """`BrokerVerbs` of a simulator; each raises `SimulatorError` if it was not carried out."""

    pause = _Verb()
    resume = _Verb()
    stop = _Verb()
    kill = _Verb()
    start = _Verb()
    disconnect = _Verb()
    reconnect = _Verb()
    disconnect_clients = _Verb()
    reconnect_clients = _Verb()

    def __init__(self, simulator: SimulatorProcess) -> None:
        self._simulator = simulator
        self.files = DirectoryFiles(simulator.log_directory)
        """The files of the brokers, if the simulator stores its data on disk."""
        with simulator.explain():
            simulator.control.get("/status")  # the first request waits for the port to be served

    def call(self, verb: str, broker: int, **options: bool) -> None:
        """Call the verb with this name."""
        request = VERBS[verb].request({"broker_id": broker, **options})
        with self._simulator.explain():
            self._simulator.control.request(*request)

    def comes_up(self, broker: int) -> bool:
        """Start a broker; return whether it serves clients. Otherwise its process has ended."""
        try:
            self.call("start", broker)
        except SimulatorError:
            return False
        return True

    def purged(self, broker: int) -> int:
        """Return the number of completed operations that a broker's purgatories have purged."""
        with self._simulator.explain():
            status = self._simulator.control.get("/purgatory")
        (purgatories,) = (one["purgatories"] for one in status["brokers"] if one["id"] == broker)
        return sum(one["purged"] for one in purgatories)
