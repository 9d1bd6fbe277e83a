"""Which virtual loop the running code belongs to, if any."""

from __future__ import annotations

import threading
from asyncio.events import _get_running_loop
from typing import TYPE_CHECKING, cast

from broker_sim.runtime.virtual.network import NetworkLoop

if TYPE_CHECKING:
    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.runtime.virtual.threads import Worker


class _WorkerOfThread(threading.local):
    worker: Worker | None = None


worker_of_thread = _WorkerOfThread()
"""`worker` is the worker that this thread is, None in all other threads."""


def current_worker() -> Worker | None:
    """Return the worker of a virtual loop that this thread is, if it is one."""
    return worker_of_thread.worker


def current_loop() -> VirtualEventLoop | None:
    """Return the virtual loop that runs in this thread, or that this thread is a worker of.

    Each thread is asked for itself: other threads, and other loops, are in real time.
    """
    loop = _get_running_loop()
    if loop is not None:
        return cast("VirtualEventLoop", loop) if isinstance(loop, NetworkLoop) else None
    worker = worker_of_thread.worker
    return None if worker is None else worker.loop
