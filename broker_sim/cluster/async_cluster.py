"""A simulated cluster in real time, on the running event loop: the composition root."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import TYPE_CHECKING, Any, Self

from broker_sim.cluster.nodes import Nodes, WrongStateError
from broker_sim.cluster.status import cluster_status, purgatory_status
from broker_sim.config import BrokerConfig
from broker_sim.controller.requests import CreatableTopic
from broker_sim.errors import ApiError
from broker_sim.network import SocketServer
from broker_sim.runtime.links import LinkFault
from broker_sim.runtime.scheduler import AsyncioScheduler
from purgatory import DelayedOperationPurgatory, SystemTimer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.broker.broker import Broker
    from broker_sim.handlers.faults.fault_injector import Fault
    from broker_sim.runtime.process import Process
    from broker_sim.trace.trace import Trace

__all__ = ["NOT_RUNNING", "AsyncCluster"]

READY_TIMEOUT_S = 30
NOT_RUNNING = "the cluster does not run; use it as a context manager"


class AsyncCluster:
    """Brokers 1 to ``brokers`` on one event loop; every method runs on that loop's thread.

    ``configs`` are Kafka's broker configurations by name for all brokers, ``broker_configs`` those
    of single ones. Clients are told ``advertised_host`` where it is not ``host``. ``trace`` writes down the life of every delayed operation; close it after the
    cluster. Raises ConfigError for a bad configuration, OSError for a port in use.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        configs: Mapping[str, str] | None = None,
        broker_configs: Mapping[int, Mapping[str, str]] | None = None,
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        ports: Sequence[int] | None = None,
        seed: int | None = None,
        trace: Trace | None = None,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster needs at least one broker, not {brokers}")
        if ports is not None and len(ports) != brokers:
            raise ValueError(f"{brokers} brokers need {brokers} ports, not {len(ports)}")
        self._host = host
        self._advertised_host = advertised_host or host
        self._ports = dict(enumerate(ports or [0] * brokers, 1))
        self._configs = {
            broker_id: BrokerConfig.from_mapping(
                {**(configs or {}), **(broker_configs or {}).get(broker_id, {})}
            )
            for broker_id in self._ports
        }
        self._rng = random.Random(seed)
        self._trace = trace
        self._servers: dict[int, SocketServer] = {}
        self._nodes: Nodes | None = None
        self._was_started = False
        self._ready = asyncio.Event()
        self._caught_up: dict[int, asyncio.Event] = {}
        self._listeners: dict[int, asyncio.Task[None]] = {}

    # -- life -----------------------------------------------------------------------------------

    async def start(self) -> Self:
        """Bind, start all brokers, and return when every one of them is ready to serve.

        Raises RuntimeError the second time: a new life takes a new cluster.
        """
        if self._was_started:
            raise RuntimeError("a cluster is started only once; make a new one")
        self._was_started = True
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def _start(self) -> None:
        for broker_id, port in self._ports.items():
            server = SocketServer(self._host, port)
            self._servers[broker_id] = server
            self._ports[broker_id] = server.port
        self._nodes = Nodes(
            AsyncioScheduler(asyncio.get_running_loop()),
            self._configs,
            {
                broker_id: (self._advertised_host, server.port)
                for broker_id, server in self._servers.items()
            },
            cluster_id=base64.urlsafe_b64encode(self._rng.randbytes(16)).decode().rstrip("="),
            rng=self._rng,
            make_purgatory=self._make_purgatory,
            on_image=self._on_image,
        )
        for broker_id in self._ports:
            self._start_broker(broker_id)
        async with asyncio.timeout(READY_TIMEOUT_S):
            await self._ready.wait()
            await asyncio.gather(*self._listeners.values())

    async def stop(self) -> None:
        """Stop all brokers and give the ports back; does nothing the second time."""
        nodes, self._nodes = self._nodes, None
        if nodes is not None:
            nodes.shutdown()
        for broker_id in list(self._servers):
            self._close_server(broker_id)
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _close_server(self, broker_id: int) -> None:
        listener = self._listeners.pop(broker_id, None)
        if listener is not None:
            listener.cancel()
        server = self._servers.pop(broker_id, None)
        if server is not None:  # else a kill has ended a controlled shutdown
            server.close()

    def _start_broker(self, broker_id: int) -> None:
        broker = self.nodes.start(broker_id)
        self._caught_up[broker_id] = asyncio.Event()
        self._listeners[broker_id] = asyncio.ensure_future(self._listen(broker))

    async def _listen(self, broker: Broker) -> None:
        """Accept clients once the broker has metadata; until then they are refused, as by Kafka."""
        await self._caught_up[broker.broker_id].wait()
        await self._servers[broker.broker_id].start(broker.process, broker, broker.config)

    def _on_image(self) -> None:
        """Look who has caught up, and whether all are unfenced; called on new metadata."""
        for broker in self.nodes.brokers.values():
            if broker.has_caught_up:
                self._caught_up[broker.broker_id].set()
        if len(self.nodes.brokers) == len(self._ports) and self.nodes.is_ready:
            self._ready.set()

    def _make_purgatory(
        self, name: str, broker_id: int, process: Process, purge_interval: int
    ) -> DelayedOperationPurgatory[Any]:
        tracer = None if self._trace is None else self._trace.observer(name, broker_id)
        purgatory: DelayedOperationPurgatory[Any] = DelayedOperationPurgatory(
            name,
            SystemTimer(name, process.clock, process),
            broker_id=broker_id,
            purge_interval=purge_interval,
            observer=tracer,
        )
        if tracer is not None:
            tracer.attach(purgatory)
        return purgatory

    # -- what one asks of it --------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The nodes; raises RuntimeError before `start` and after `stop`."""
        if self._nodes is None:
            raise RuntimeError(NOT_RUNNING)
        return self._nodes

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, with commas between them."""
        return ",".join(f"{self._advertised_host}:{port}" for port in self._ports.values())

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return host and port of one broker."""
        return self.nodes.node(broker_id).address

    def pause(self, broker_id: int) -> None:
        """Stop the broker's process where it is (SIGSTOP)."""
        self.nodes.pause(broker_id)

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue (SIGCONT)."""
        self.nodes.resume(broker_id)

    def kill(self, broker_id: int) -> None:
        """End the broker's process without a word (SIGKILL); its logs stay."""
        self.nodes.kill(broker_id)
        self._close_server(broker_id)

    async def stop_broker(self, broker_id: int) -> None:
        """Stop a broker by a controlled shutdown (SIGTERM); returns when its process has ended.

        That takes about as long as `broker.heartbeat.interval.ms`; see `Nodes.stop`.
        """
        stopped = asyncio.Event()

        def on_stopped() -> None:
            self._close_server(broker_id)
            stopped.set()

        self.nodes.stop(broker_id, on_stopped)
        await stopped.wait()

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again on its port and its logs.

        Clients reach it when the controller has taken it in again, which is not before its last
        session has ended (``broker.session.timeout.ms`` after its last heartbeat).
        """
        self.nodes.node(broker_id)
        if broker_id not in self._servers:
            self._servers[broker_id] = SocketServer(self._host, self._ports[broker_id])
        self._start_broker(broker_id)

    def set_link(self, source: int, target: int, *, drop: bool = False, delay_ms: int = 0) -> None:
        """Cut or slow the link from one broker to another; without arguments mend it."""
        self.nodes.node(source)
        self.nodes.node(target)
        self.nodes.links.set_fault(source, target, LinkFault(drop, delay_ms))

    def disconnect(self, broker_id: int) -> None:
        """Cut the broker off from the other nodes; clients still reach it."""
        self.nodes.isolate(broker_id)

    def reconnect(self, broker_id: int) -> None:
        """Undo `disconnect`."""
        self.nodes.isolate(broker_id, drop=False)

    def disconnect_clients(self, broker_id: int) -> None:
        """Cut the broker off from its clients; the other nodes still reach it.

        Connections stay and new ones are made, but what client and broker send waits until
        `reconnect_clients`, or is gone with the broker. Raises WrongStateError for a dead one.
        """
        self._cut_off_clients(broker_id, cut_off=True)

    def reconnect_clients(self, broker_id: int) -> None:
        """Undo `disconnect_clients`."""
        self._cut_off_clients(broker_id, cut_off=False)

    def _cut_off_clients(self, broker_id: int, *, cut_off: bool) -> None:
        node = self.nodes.node(broker_id)
        if broker_id not in self._servers:
            raise WrongStateError(f"broker {broker_id} is dead; no client is connected to it")
        node.clients_cut_off = cut_off
        server = self._servers[broker_id]
        (server.hold_clients if cut_off else server.release_clients)()

    def inject(self, fault: Fault) -> int:
        """Let a fault hit clients' requests from now on; returns the number to `heal` it by."""
        if fault.broker_id is not None:
            self.nodes.node(fault.broker_id)
        return self.nodes.faults.add(fault)

    def heal(self, fault_id: int | None = None) -> None:
        """End one injected fault, or all of them; KeyError if there is none of that number."""
        if fault_id is None:
            self.nodes.faults.clear()
        else:
            self.nodes.faults.remove(fault_id)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic at the controller; -1 takes the default. Raises ApiError."""
        wanted = CreatableTopic(name, partitions, replication_factor, configs=dict(configs or {}))
        (result,) = self.nodes.controller.create_topics([wanted], validate_only=False)
        if not result.outcome.ok:
            raise ApiError(result.outcome.error_code, result.outcome.error_message or "")

    def status(self) -> dict[str, Any]:
        """Return brokers with their state, and partitions with leader, ISR, LEO and HW."""
        return cluster_status(self.nodes)

    def purgatory(self) -> dict[str, Any]:
        """Return what is parked where: keys, age, time left, wheel level and bucket."""
        return purgatory_status(self.nodes)
