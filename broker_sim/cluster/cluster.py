"""A simulated cluster in a thread of its own, for tests and programs that are not asynchronous.

with Cluster(brokers=3) as cluster:
producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from broker_sim.cluster.async_cluster import NOT_RUNNING, AsyncCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from broker_sim.handlers.faults.fault_injector import Fault

__all__ = ["AsyncCluster", "Cluster", "new_event_loop"]

T = TypeVar("T")


class Cluster:
    """An `AsyncCluster` on a thread of its own; the same verbs, from any thread."""

    def __init__(self, brokers: int = 3, **options: Any) -> None:
        self._cluster = AsyncCluster(brokers, **options)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> Self:
        """Start the cluster; returns when it is ready. Raises RuntimeError the second time."""
        if self._loop is not None:
            raise RuntimeError("the cluster runs already")
        loop = self._loop = new_event_loop()
        self._thread = threading.Thread(target=_run, args=(loop,), name="broker-sim", daemon=True)
        self._thread.start()
        try:
            self._await(self._cluster.start())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the cluster and its thread; does nothing if it does not run."""
        loop = self._loop
        if loop is None:
            return
        try:
            self._await(self._cluster.stop())
        finally:
            self._loop = None
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the cluster's thread; an interrupt of the wait cancels it."""
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(NOT_RUNNING)
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _do(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        async def run() -> T:
            return function(*args, **kwargs)

        return self._await(run())

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, with commas between them."""
        return self._cluster.bootstrap_servers

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return host and port of one broker."""
        return self._cluster.address(broker_id)

    def pause(self, broker_id: int) -> None:
        """Stop the broker's process where it is (SIGSTOP)."""
        self._do(self._cluster.pause, broker_id)

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue (SIGCONT)."""
        self._do(self._cluster.resume, broker_id)

    def kill(self, broker_id: int) -> None:
        """End the broker's process without a word (SIGKILL); its logs stay."""
        self._do(self._cluster.kill, broker_id)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker by a controlled shutdown (SIGTERM); returns when its process has ended."""
        self._await(self._cluster.stop_broker(broker_id))

    def restart(self, broker_id: int) -> None:
        """Start a dead broker again on its port and its logs."""
        self._await(self._cluster.restart(broker_id))

    def set_link(self, source: int, target: int, *, drop: bool = False, delay_ms: int = 0) -> None:
        """Cut or slow the link from one broker to another; without arguments mend it."""
        self._do(self._cluster.set_link, source, target, drop=drop, delay_ms=delay_ms)

    def disconnect(self, broker_id: int) -> None:
        """Cut the broker off from the other nodes; clients still reach it."""
        self._do(self._cluster.disconnect, broker_id)

    def reconnect(self, broker_id: int) -> None:
        """Undo `disconnect`."""
        self._do(self._cluster.reconnect, broker_id)

    def disconnect_clients(self, broker_id: int) -> None:
        """Cut the broker off from its clients; the other nodes still reach it."""
        self._do(self._cluster.disconnect_clients, broker_id)

    def reconnect_clients(self, broker_id: int) -> None:
        """Undo `disconnect_clients`."""
        self._do(self._cluster.reconnect_clients, broker_id)

    def inject(self, fault: Fault) -> int:
        """Let a fault hit clients' requests from now on; returns the number to `heal` it by."""
        return self._do(self._cluster.inject, fault)

    def heal(self, fault_id: int | None = None) -> None:
        """End one injected fault, or all of them; KeyError if there is none of that number."""
        self._do(self._cluster.heal, fault_id)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic at the controller; -1 takes the default. Raises ApiError."""
        self._do(self._cluster.create_topic, name, partitions, replication_factor, configs)

    def status(self) -> dict[str, Any]:
        """Return brokers with their state, and partitions with leader, ISR, LEO and HW."""
        return self._do(self._cluster.status)

    def purgatory(self) -> dict[str, Any]:
        """Return what is parked where: keys, age, time left, wheel level and bucket."""
        return self._do(self._cluster.purgatory)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, and close it when no task is left."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where it is installed (extra ``fast``), else asyncio's."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.new_event_loop()
