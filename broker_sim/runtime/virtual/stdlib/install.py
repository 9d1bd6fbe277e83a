"""Installs the replacements of this package in the standard library, and removes them.

They depend on their caller, so they may stay installed. A module with `from time import monotonic` gets the
replacement only if it is imported afterwards: install before the program is imported.
"""

from __future__ import annotations

import concurrent.futures
import os
import queue
import random
import subprocess
import threading
import time
import uuid
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.system import StandardSocket
from broker_sim.runtime.virtual.stdlib import blocking, chance, sockets, times
from broker_sim.runtime.virtual.stdlib.kafka_clients import refuse_confluent_kafka
from broker_sim.runtime.virtual.stdlib.other_clocks import prepare_other_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ATTRIBUTES: list[tuple[Any, dict[str, Any]]] = [
    (time, times.REPLACEMENTS),
    (random, chance.RANDOM_REPLACEMENTS),
    (os, chance.OS_REPLACEMENTS),
    (uuid, chance.UUID_REPLACEMENTS),
    (random.Random, {"seed": chance.seed_of_random}),
    (concurrent.futures.Future, blocking.FUTURE_REPLACEMENTS),
    (concurrent.futures.ThreadPoolExecutor, blocking.EXECUTOR_REPLACEMENTS),
    (threading.Thread, blocking.THREAD_REPLACEMENTS),
    (threading.Condition, blocking.CONDITION_REPLACEMENTS),
    (threading, {"_time": times.monotonic()}),
    (queue, {"time": times.monotonic()}),
    (subprocess, {"time": times.real_time()}),
    (StandardSocket, sockets.REPLACEMENTS),
]
_MEMBERS: list[tuple[type, dict[str, Any]]] = [(datetime, times.DATETIME_REPLACEMENTS)]
"""The same for types written in C. Looked up here, because the module's name is freezegun's class while time is
frozen."""
_undo: list[Callable[[], object]] = []
"""Calls that remove the replacements; empty while none is installed."""


def install() -> None:
    """Install the replacements. Idempotent."""
    if _undo:
        return
    times.look_beneath()
    for owner, replacements in _ATTRIBUTES:
        for name, replacement in replacements.items():
            _put(owner, name, replacement)
    refuse_confluent_kafka()
    prepare_other_clocks(_without_replacements)
    for kind, replacements in _MEMBERS:
        for name, member in replacements.items():
            before = times.replace_member(kind, name, member)
            _undo.append(partial(times.replace_member, kind, name, before))


@contextmanager
def _without_replacements() -> Iterator[None]:
    """Remove the replacements for the duration of the block, if they are installed."""
    was_in = bool(_undo)
    uninstall()
    try:
        yield
    finally:
        if was_in:
            install()


def _put(owner: Any, name: str, replacement: Any) -> None:
    """Install a function in a module or class, with the name by which pickle finds it."""
    real = getattr(owner, name)
    is_module = isinstance(owner, ModuleType)
    replacement.__module__ = owner.__name__ if is_module else owner.__module__
    replacement.__name__ = name
    replacement.__qualname__ = name if is_module else f"{owner.__qualname__}.{name}"
    replacement.__doc__ = real.__doc__
    setattr(owner, name, replacement)
    _undo.append(partial(setattr, owner, name, real))


def uninstall() -> None:
    """Remove the replacements. Idempotent; modules that have imported one by name keep it."""
    while _undo:
        _undo.pop()()
