"""Which process of a virtual loop the running code belongs to, if any."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.runtime.virtual.processes import Process

PROCESS: ContextVar[Process | None] = ContextVar("virtual_process", default=None)
"""None stands for the test, the brokers and the network. Tasks and callbacks inherit it."""
