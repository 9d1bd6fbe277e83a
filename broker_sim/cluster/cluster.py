"""A simulated cluster in a thread of its own, for tests and programs that are not asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from broker_sim_purgatory import SystemClock

from broker_sim.cluster.async_cluster import AsyncCluster, check_threads, forked_error, unmet
from broker_sim.cluster.verbs import WAIT_LIMIT_S, Verbs
from broker_sim.control.verb import BlockingFace
from broker_sim.errors import ClusterTimeoutError, WrongStateError
from broker_sim.runtime.scheduler import new_event_loop
from broker_sim.runtime.system import Thread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

P = ParamSpec("P")
T = TypeVar("T")


def same_parameters(
    _model: Callable[Concatenate[Any, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Return a decorator that gives an `__init__` the signature of `_model`, which gets all its arguments."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        init.__signature__ = inspect.signature(_model)  # type: ignore[attr-defined]
        return init

    return decorate


class Cluster(Verbs, BlockingFace):
    """An `AsyncCluster` in a thread of its own; takes the same arguments, has the same verbs.

    `with Cluster(brokers=3) as cluster:` opens and closes it; clients connect to
    `cluster.bootstrap_servers`. A verb that waits returns when the wait is over. Thread rule: any thread may call any
    method.
    """

    @same_parameters(AsyncCluster.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._cluster = AsyncCluster(*args, **kwargs)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        state = "not running" if self._loop is None else f"at {self.bootstrap_servers}"
        return f"<{type(self).__name__} {state}>"

    # -- open and close -------------------------------------------------------------------------

    def open(self) -> Self:
        """Start the cluster; returns when every broker accepts clients.

        Raises WrongStateError if it was opened before: create a new cluster.
        """
        if self._loop is not None:
            raise WrongStateError("the cluster is running already")
        check_threads()
        self._pid = os.getpid()
        loop = self._loop = new_event_loop()
        self._thread = Thread(target=_run, args=(loop,), name="broker-sim", daemon=True)
        self._thread.start()
        try:
            self._await(self._cluster.open())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop the cluster and its thread; does nothing if it is not running."""
        loop = self._loop
        if loop is None:
            return
        if self._pid != os.getpid():  # the thread and its brokers stay with the other process
            self._loop = None
            return
        try:
            self._await(self._cluster.close())
        finally:
            self._loop = None
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- calls to the cluster's thread --------------------------------------------------------------

    def bind_verb(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method so that it runs on the cluster's thread while the caller waits."""

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._await(_call_verb(method, self._cluster, args, kwargs))

        return call

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the cluster's thread; interrupting the wait cancels it."""
        if self._loop is None:
            coroutine.close()
            raise WrongStateError("the cluster is not running; use it as a context manager, or call open() first")
        if self._pid != os.getpid():
            coroutine.close()
            raise forked_error(self._pid)
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise WrongStateError(
                "this is the cluster's own thread, which cannot wait for itself; a function that "
                "runs there, such as a hook, must not call the cluster"
            )
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def wait_until(self, predicate: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until `predicate()` is true; it is called on this thread whenever something changes.

        It may read any state of the cluster, and no other state. Raises ClusterTimeoutError, with what `describe`
        returns, after `timeout_s` seconds.
        """
        clock = SystemClock()
        end_ms = clock.now_ms() + round(timeout_s * 1_000)
        self._await(self._watch(watched := self._cluster.watched(), begin=True))
        try:
            while True:
                count = self._cluster.changes.count
                if predicate():
                    return
                left_s = (end_ms - clock.now_ms()) / 1_000
                if left_s <= 0 or not self._await(self._changed_after(count, left_s)):
                    raise ClusterTimeoutError(f"waited {timeout_s:g} s for {unmet(predicate, self)}")
        finally:
            self._await(self._watch(watched, begin=False))

    @staticmethod
    async def _watch(watched: AbstractContextManager[None], *, begin: bool) -> None:
        if begin:
            watched.__enter__()
        else:
            watched.__exit__(None, None, None)

    async def _changed_after(self, count: int, limit_s: float) -> bool:
        """Wait for a change on the cluster's thread; return whether there was one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._cluster.changes.after(count)
                return True
        return False

    # -- addresses --------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of each broker's first listener, comma-separated. Raises WrongStateError before `open`."""
        return self._cluster.bootstrap_servers

    def bootstrap_servers_of(self, listener: str) -> str:
        """Return `host:port` of each broker's listener of that name. Raises ConfigError for an unknown listener."""
        return self._cluster.bootstrap_servers_of(listener)

    def client_config(
        self, client: str, *, user: str | None = None, mechanism: str | None = None, listener: str | None = None
    ) -> dict[str, Any]:
        """Return the configuration of a client; see `AsyncCluster.client_config`."""
        return self._cluster.client_config(client, user=user, mechanism=mechanism, listener=listener)

    @property
    def control_url(self) -> str | None:
        """The address of the control port, None without one."""
        return self._cluster.control_url

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return host and port of one broker's first listener. Raises UnknownBrokerError."""
        return self._cluster.address(broker_id)


async def _call_verb(method: Callable[..., Any], cluster: AsyncCluster, args: Any, kwargs: Any) -> Any:
    result = method(cluster, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, and close it when no task is left."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()
