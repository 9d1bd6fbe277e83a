"""The nodes of a cluster and what can befall them, whatever time they live in.

Holds the controller, the links and the brokers. The real-time cluster puts sockets in front of it;
the simulator drives it in virtual time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.broker.broker import Broker
from broker_sim.broker.environment import BrokerEnvironment, PurgatoryFactory
from broker_sim.controller import Controller
from broker_sim.handlers import ApiTable
from broker_sim.handlers.faults import FaultInjector
from broker_sim.log import LogManager
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault, Links
from broker_sim.runtime.process import Handle, Process, ProcessState

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import Scheduler

__all__ = ["Node", "Nodes", "UnknownBrokerError", "WrongStateError"]


class UnknownBrokerError(LookupError):
    """There is no broker with that id."""


class WrongStateError(RuntimeError):
    """The verb does not fit the state that the broker is in."""


class Node:
    """One broker's place in the cluster: what stays when the broker dies."""

    __slots__ = (
        "address",
        "broker",
        "broker_id",
        "clients_cut_off",
        "config",
        "logs",
        "process",
    )

    def __init__(
        self, broker_id: int, config: BrokerConfig, logs: LogManager, address: tuple[str, int]
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.logs = logs
        self.address = address
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.clients_cut_off = False

    @property
    def state(self) -> ProcessState:
        """Running, paused or dead."""
        return ProcessState.DEAD if self.process is None else self.process.state


class Nodes:
    """Brokers 1 to N, their controller and their links. Runs on the scheduler's thread only."""

    def __init__(
        self,
        scheduler: Scheduler,
        configs: Mapping[int, BrokerConfig],
        addresses: Mapping[int, tuple[str, int]],
        *,
        cluster_id: str,
        rng: random.Random,
        make_purgatory: PurgatoryFactory,
        latency_ms: Callable[[int, int], int] | None = None,
        on_image: Callable[[], object] = lambda: None,
    ) -> None:
        self.scheduler = scheduler
        self.cluster_id = cluster_id
        self.links = Links(scheduler, latency_ms)
        self.faults = FaultInjector()
        self.brokers: dict[int, Broker] = {}
        self.nodes = {
            broker_id: Node(
                broker_id,
                config,
                LogManager(scheduler.clock, config.producer_id_expiration_ms),
                addresses[broker_id],
            )
            for broker_id, config in configs.items()
        }
        self._controller_process = Process("controller", scheduler)
        self.links.attach(CONTROLLER_ID, self._controller_process)
        first_config = next(iter(configs.values()))
        self.controller = Controller(scheduler.clock, rng, first_config, self._publish, cluster_id)
        self._environment = BrokerEnvironment(
            cluster_id=cluster_id,
            links=self.links,
            controller=self.controller,
            brokers=self.brokers,
            random=rng,
            make_purgatory=make_purgatory,
            api_table=ApiTable(),
            faults=self.faults,
            on_image=on_image,
        )
        self._tick_handle: Handle | None = None

    def _publish(self, image: MetadataImage) -> None:
        for broker_id, broker in self.brokers.items():
            self.links.send(CONTROLLER_ID, broker_id, broker.apply_image, image)

    def _tick(self) -> None:
        self.controller.tick()
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        delay_ms = max(1, self.controller.next_deadline_ms() - self.scheduler.clock.now_ms())
        self._tick_handle = self._controller_process.call_later(delay_ms, self._tick)

    def node(self, broker_id: int) -> Node:
        """Return the node, or raise `UnknownBrokerError` naming those that there are."""
        node = self.nodes.get(broker_id)
        if node is None:
            known = ", ".join(map(str, self.nodes))
            raise UnknownBrokerError(f"there is no broker {broker_id}; there are {known}")
        return node

    def start(self, broker_id: int) -> Broker:
        """Start a dead broker on the logs that it left; raises `WrongStateError` if it lives."""
        node = self.node(broker_id)
        if node.state is not ProcessState.DEAD:
            raise WrongStateError(f"broker {broker_id} is {node.state.value}; kill it first")
        if self._tick_handle is None:
            self._schedule_tick()
        node.logs.recover()
        node.clients_cut_off = False
        node.process = Process(f"broker-{broker_id}", self.scheduler)
        self.links.attach(broker_id, node.process)
        node.broker = Broker(
            broker_id, node.config, node.process, node.logs, node.address, self._environment
        )
        self.brokers[broker_id] = node.broker
        node.broker.start()
        return node.broker

    def pause(self, broker_id: int) -> None:
        """Stop the broker's process where it is (SIGSTOP)."""
        node = self.node(broker_id)
        if node.process is None or node.state is not ProcessState.RUNNING:
            raise WrongStateError(f"broker {broker_id} is {node.state.value}, not running")
        node.process.pause()

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue (SIGCONT)."""
        node = self.node(broker_id)
        if node.process is None or node.state is not ProcessState.PAUSED:
            raise WrongStateError(f"broker {broker_id} is {node.state.value}, not paused")
        node.process.resume()

    def kill(self, broker_id: int) -> None:
        """End the broker's process without a word (SIGKILL); its logs stay."""
        node = self.node(broker_id)
        if node.broker is None or node.state is ProcessState.DEAD:
            raise WrongStateError(f"broker {broker_id} is dead already")
        node.broker.die()
        node.broker = None
        node.process = None
        del self.brokers[broker_id]
        self.links.detach(broker_id)

    def isolate(self, broker_id: int, drop: bool = True) -> None:
        """Cut a broker off from all other nodes, not from its clients; ``drop=False`` mends it."""
        self.node(broker_id)
        for other in (CONTROLLER_ID, *self.nodes):
            if other != broker_id:
                self.links.set_fault(broker_id, other, LinkFault(drop=drop))
                self.links.set_fault(other, broker_id, LinkFault(drop=drop))

    @property
    def is_ready(self) -> bool:
        """Whether every living broker is unfenced and every one has heard so."""
        return all(
            all(broker.metadata.is_alive(other) for other in self.brokers)
            for broker in self.brokers.values()
        )

    def shutdown(self) -> None:
        """Kill what lives; nothing runs any more afterwards."""
        for broker_id in list(self.brokers):
            self.kill(broker_id)
        if self._tick_handle is not None:
            self._tick_handle.cancel()
        self._controller_process.kill()
