"""A cluster in virtual time: an `AsyncCluster` on a virtual event loop, stepped from outside.

    cluster = VirtualCluster(brokers=3, seed=7)
    cluster.create_topic("t", partitions=1, replication_factor=3)
    cluster.pause(2)
    pending = cluster.client().send(1, produce_request(("t", 0)), version=9)
    cluster.run_until(lambda: pending.done)

Waiting takes no real time. All random choices come from the seed: the same calls with the same seed
give the same trace, with the same digest. The invariants are checked after every step; a violation
raises `SimulationError`, which names the seed.
"""

from __future__ import annotations

import inspect
import random
from contextlib import contextmanager
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeVar

from broker_sim.cluster.arguments import FIRST_BROKER_ID
from broker_sim.cluster.async_cluster import unmet
from broker_sim.cluster.verbs import WAIT_LIMIT_S, Verbs
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.cluster.virtual.virtual_client import VirtualClient
from broker_sim.control.verb import BlockingFace, verbs_of
from broker_sim.errors import ClusterTimeoutError
from broker_sim.runtime.arguments import names_checked, traced_arguments
from broker_sim.runtime.links import drawn_latency
from broker_sim.runtime.virtual.core.clock import NS_PER_MS
from broker_sim.runtime.virtual.run import VirtualScheduler

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from pathlib import Path

    from broker_sim.cluster.nodes.node import LostRecords
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.cluster.virtual.simulated_cluster import ClientHost
    from broker_sim.config import GivenValue
    from broker_sim.log import DiskOptions, SimulatedDisk
    from broker_sim.trace import Trace

T = TypeVar("T")

FIRST_CLIENT_ID = 1_000
QUERIES = frozenset(name for name, verb in verbs_of(Verbs).items() if verb.address.method == "GET")
"""Verbs that change nothing; the trace leaves them out."""


class SimulationError(AssertionError):
    """A simulated run failed; the text names the seed that repeats it, and the last events."""


class VirtualCluster(Verbs, BlockingFace):
    """A cluster of `brokers` brokers in virtual time. Single-threaded; it runs from the start.

    It has the verbs of every cluster; those that wait advance virtual time. `max_latency_ms` > 0 gives every message,
    between nodes and between clients and brokers, a random delay up to that; alternatively `latency_ms(source,
    target)` returns the delay of each message between nodes. With
    `disk` each broker keeps its logs on a simulated disk, which can lose its power. The other arguments are
    those of `AsyncCluster`. Use it as a context manager, or call `close`, to stop all brokers and write the trace.
    """

    @names_checked
    def __init__(
        self,
        brokers: int = 3,
        *,
        first_broker_id: int = FIRST_BROKER_ID,
        topics: Sequence[str] = (),
        seed: int = 0,
        configs: Mapping[str, GivenValue] | None = None,
        broker_configs: Mapping[int, Mapping[str, GivenValue]] | None = None,
        listeners: str | None = None,
        advertised_listeners: str | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        max_latency_ms: int = 0,
        latency_ms: Callable[[int, int], int] | None = None,
        check_invariants: bool = True,
        trace: Trace | str | Path | None = None,
        as_version: str | None = None,
        features: Mapping[str, int] | None = None,
        memory_limit: int | str | None = None,
        disk: DiskOptions | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self.seed = seed
        self.random = random.Random(f"{seed}/run")
        self.scheduler = VirtualScheduler(seed)
        self.loop = self.scheduler.loop
        self.trace = self.loop.trace
        self._client_ids = count(FIRST_CLIENT_ID)
        if max_latency_ms:
            self.loop.network.latency_ms = (0, max_latency_ms)
            latency_ms = drawn_latency(self.loop.stream("links"), max_latency_ms)
        self.inside = SimulatedCluster(
            self.loop,
            brokers,
            first_broker_id=first_broker_id,
            latency_ms=latency_ms,
            check_invariants=check_invariants,
            configs=configs,
            broker_configs=broker_configs,
            listeners=listeners,
            advertised_listeners=advertised_listeners,
            security=security,
            users=users,
            trace=trace,
            topics=topics,
            as_version=as_version,
            features=features,
            memory_limit=memory_limit,
            disk=disk,
            cluster_id=cluster_id,
        )
        """The same cluster for code on its loop, in callbacks and coroutines."""
        self.wait_for(self.inside.open())

    def close(self) -> None:
        """Stop all brokers, and close the trace file."""
        self.wait_for(self.inside.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nodes(self) -> Nodes:
        """The nodes of the cluster."""
        return self.inside.nodes

    def bind_verb(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method bound to this cluster; a wait in it advances virtual time."""

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if method.__name__ not in QUERIES:
                self.trace.record(method.__name__, *traced_arguments(method, args, kwargs))
            result = self.loop.run_now(method, self.inside, *args, **kwargs)
            return self.wait_for(result) if inspect.iscoroutine(result) else result

        return call

    # -- power ----------------------------------------------------------------------------------

    @property
    def disks(self) -> Mapping[int, SimulatedDisk]:
        """The simulated disks by broker; their attributes may be changed."""
        return self.inside.disks

    def lose_power(self, *broker_ids: int) -> None:
        """Cut the power of these brokers (default: all); unflushed bytes are lost.

        `kill`, in contrast, loses nothing that the process has written. Raises WrongStateError
        without simulated disks.
        """
        self.trace.record("lose_power", *broker_ids)
        self.loop.run_now(self.inside.lose_power, *broker_ids)

    def restore_power(self, *broker_ids: int) -> None:
        """Start these dead brokers (default: all); returns when clients can connect to them."""
        self.trace.record("restore_power", *broker_ids)
        self.wait_for(self.inside.restore_power(*broker_ids))

    @property
    def lost_records(self) -> list[LostRecords]:
        """The records that brokers lost in power failures, detected when they were restarted."""
        return [loss for node in self.nodes.nodes.values() for loss in node.lost]

    # -- time -----------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The virtual time in milliseconds since the cluster was created."""
        return self.scheduler.clock.now_ms()

    def step(self) -> bool:
        """Advance the time to the next callback and run it; returns False if there is none."""
        with self._failures_name_the_seed():
            return self.loop.step()

    def run_until(self, condition: Callable[[], bool], timeout_ms: int = 120_000) -> None:
        """Step until the condition holds; raises `SimulationError` after `timeout_ms` virtual ms."""
        with self._failures_name_the_seed():
            end_ns = self.loop.clock.now_ns + timeout_ms * NS_PER_MS
            if not self.loop.run_until(condition, end_ns):
                raise TimeoutError(f"not reached within {timeout_ms} ms")

    def wait_until(self, predicate: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> None:
        """Step until `predicate()` is true.

        Raises ClusterTimeoutError, with what `describe` returns, after that much virtual time.
        """
        end_ns = self.loop.clock.now_ns + round(timeout_s * 1_000) * NS_PER_MS
        with self._failures_name_the_seed():
            reached = self.loop.run_until(lambda: bool(predicate()), end_ns)
        if not reached:
            raise ClusterTimeoutError(f"waited {timeout_s:g} s for {unmet(predicate, self)}")

    def advance(self, duration_ms: int) -> None:
        """Advance the time by `duration_ms`, running everything that becomes due."""
        with self._failures_name_the_seed():
            self.scheduler.advance_to(self.now_ms + duration_ms)

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the cluster's loop to its end, and return its result."""
        task: asyncio.Task[T] = self.loop.create_task(coroutine)
        with self._failures_name_the_seed():
            self.loop.run_until(task.done)
        return task.result()

    @contextmanager
    def _failures_name_the_seed(self) -> Iterator[None]:
        try:
            yield
        except SimulationError:
            raise
        except Exception as error:
            events = "\n".join(self.trace.recent)
            raise SimulationError(
                f"seed {self.seed}: {error}\nat {self.now_ms} ms of virtual time; last events:\n{events}"
            ) from error

    # -- clients --------------------------------------------------------------------------------

    def client(self, host: str | None = None, listener: str | None = None) -> VirtualClient:
        """Return a new client on that host (default: a new host), for that listener (default: the first)."""
        if listener is None:
            addresses = {broker_id: node.address for broker_id, node in self.nodes.nodes.items()}
        else:
            addresses = self.inside.listeners.addresses_of(listener)
        return VirtualClient(host or f"client-{next(self._client_ids)}", self.loop, addresses)

    def client_host(self, name: str) -> ClientHost:
        """Return a host for clients, which can be cut off from the brokers."""
        return self.inside.client_host(name)
