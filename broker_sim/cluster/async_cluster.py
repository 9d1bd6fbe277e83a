"""A simulated cluster on an asyncio event loop: the composition root.

On asyncio's own loop and on uvloop the cluster has sockets and real time; on a `VirtualEventLoop` it
has memory pipes and virtual time. Its code is the same on all of them.
"""

from __future__ import annotations

import asyncio
import base64
import random
from types import MethodType
from typing import TYPE_CHECKING, Any, Self

from broker_sim.cluster.listeners import Listeners
from broker_sim.cluster.nodes import Nodes
from broker_sim.cluster.verbs import Verbs
from broker_sim.config import BrokerConfig
from broker_sim.control.verb import AsyncFace
from broker_sim.errors import ClusterTimeoutError, WrongStateError
from broker_sim.protocol.release import find_release
from broker_sim.runtime.purgatories import PurgatoryFactory
from broker_sim.runtime.scheduler import LoopScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.config import GivenValue
    from broker_sim.control.server import ControlServer
    from broker_sim.runtime.purgatories import ObserverFactory
    from broker_sim.trace import Trace

__all__ = ["AsyncCluster"]

WAIT_LIMIT_S = 60
"""More than a killed broker needs to come back: its old session ends after 9 s unless configured."""


class AsyncCluster(Verbs, AsyncFace):
    """Brokers 1 to `brokers` on one event loop, to be used with `async with`.

    `configs` are Kafka's broker configurations by name for all brokers, `broker_configs` those of
    single ones. Brokers listen on `host` and on `ports`, one for each (any free ones unless given);
    clients are told `advertised_host` where it is not `host`. `seed` makes ids and random choices
    the same every time. `trace` gets the life of every delayed operation; close it after the
    cluster. `control` serves the control port: True on any free port, a number on that port, or by a
    `ControlServer` that exists already. `as_version` is the Kafka release, such as "3.7", whose API
    versions are advertised; None is the newest one.

    Raises ConfigError for a bad configuration, ValueError for other bad arguments, and OSError for a
    port in use when the cluster is opened. Thread rule: use it on its event loop's thread only.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        configs: Mapping[str, GivenValue] | None = None,
        broker_configs: Mapping[int, Mapping[str, GivenValue]] | None = None,
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        ports: Sequence[int] | None = None,
        seed: int | None = None,
        trace: Trace | None = None,
        control: bool | int | ControlServer = False,
        as_version: str | None = None,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster needs at least one broker, not {brokers}")
        if ports is not None and len(ports) != brokers:
            raise ValueError(f"{brokers} brokers need {brokers} ports, not {len(ports)}")
        self._host = host
        self._advertised_host = advertised_host or host
        self._configs = {
            broker_id: BrokerConfig.from_mapping(
                {**(configs or {}), **(broker_configs or {}).get(broker_id, {})}
            )
            for broker_id in range(1, brokers + 1)
        }
        self._rng = random.Random(seed)
        self._as_version = None if as_version is None else find_release(as_version).name
        self._wanted_control = control
        self._control: ControlServer | None = None
        self._nodes: Nodes | None = None
        self._was_opened = False
        self._changed = asyncio.Event()
        """Set whenever a broker has applied new metadata or accepts clients."""
        self.listeners = Listeners(
            host, dict(enumerate(ports or [0] * brokers, 1)), self._changed.set
        )
        self.observers: list[ObserverFactory] = [] if trace is None else [trace]
        """What observes the purgatories; add to it before `open`."""
        self.latency_ms: Callable[[int, int], int] | None = None
        """How long a message takes from one node to another; set it before `open`."""

    def bind_verb(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method, bound to this cluster."""
        return MethodType(method, self)

    # -- open and close -------------------------------------------------------------------------

    async def open(self) -> Self:
        """Start all brokers; returns when every one of them accepts clients.

        Raises WrongStateError the second time: take a new cluster.
        """
        if self._was_opened:
            raise WrongStateError("a cluster is opened only once; make a new one")
        self._was_opened = True
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def _open(self) -> None:
        for broker_id in self._configs:
            self.listeners.bind(broker_id)
        self._nodes = Nodes(
            scheduler := LoopScheduler(asyncio.get_running_loop()),
            self._configs,
            {
                broker_id: (self._advertised_host, port)
                for broker_id, port in self.listeners.ports.items()
            },
            cluster_id=base64.urlsafe_b64encode(self._rng.randbytes(16)).decode().rstrip("="),
            rng=self._rng,
            make_purgatory=PurgatoryFactory(scheduler, self.observers),
            latency_ms=self.latency_ms,
            on_image=self._on_image,
            as_version=self._as_version,
        )
        for broker_id in self._configs:
            self.listeners.serve(self._nodes.start(broker_id))
        await self._until(lambda: self._is_ready, "the brokers to start")
        if self._wanted_control is not False:
            self._control = _control_server(self._wanted_control)
            self._control.serve(self)

    @property
    def _is_ready(self) -> bool:
        return self.nodes.is_ready and all(map(self.listeners.is_accepting, self._configs))

    async def close(self) -> None:
        """Stop all brokers and close their ports; does nothing the second time."""
        control, self._control = self._control, None
        if control is not None:
            await control.close()
        nodes, self._nodes = self._nodes, None
        if nodes is not None:
            nodes.shutdown()
        self.listeners.close_all()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _on_image(self) -> None:
        self.listeners.on_image()
        self._changed.set()

    async def _stop(self, broker_id: int) -> None:
        stopped = asyncio.Event()
        self.nodes.stop(broker_id, stopped.set)
        await stopped.wait()
        self.listeners.close(broker_id)

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ClusterTimeoutError(
                f"waited {WAIT_LIMIT_S} s for {what}; look at the cluster's status"
            ) from None

    # -- addresses --------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The nodes; raises WrongStateError before `open` and after `close`."""
        if self._nodes is None:
            raise WrongStateError("the cluster does not run; use it as a context manager")
        return self._nodes

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every broker, with commas between them."""
        return ",".join(f"{self._advertised_host}:{port}" for port in self.listeners.ports.values())

    @property
    def control_url(self) -> str | None:
        """The address of the control port, None without one."""
        return None if self._control is None else self._control.url

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return host and port of one broker. Raises UnknownBrokerError."""
        return self.nodes.node(broker_id).address


def _control_server(wanted: bool | int | ControlServer) -> ControlServer:
    from broker_sim.control.server import ControlServer  # noqa: PLC0415 - rarely used

    if isinstance(wanted, ControlServer):
        return wanted
    return ControlServer(0 if wanted is True else wanted)
