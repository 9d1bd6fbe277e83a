"""Running a whole program in virtual time, as `asyncio.run` does in real time."""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from broker_sim.runtime.virtual.loop import VirtualEventLoop
from broker_sim.runtime.virtual.stdlib.for_aiokafka import prepare_aiokafka
from broker_sim.runtime.virtual.stdlib.hash_seed import require_pinned_hash_seed
from broker_sim.runtime.virtual.stdlib.install import install

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

__all__ = ["run"]

Result = TypeVar("Result")
ENDING_S = 3_600.0
"""How much virtual time the tasks of a run that failed may take to end."""
FROZEN_BY_PYTHON = 1_000
"""More than CPython freezes itself when it starts, 375 objects in 3.12.1, and less than its modules have."""


def run(
    main: Callable[[VirtualEventLoop], Coroutine[Any, Any, Result]],
    seed: int = 0,
    *,
    hash_seed: Literal["pinned", "any"] = "pinned",
    **options: Any,
) -> Result:
    """Run `main(loop)` on a new virtual loop and return its result.

    The standard library tells virtual time and seeded chance to the program (see `stdlib`), from
    the first run of a process on for good. `hash_seed="any"` lets a run pass that another process
    may not repeat, "pinned" raises HashSeedError.

    `options` are those of `VirtualEventLoop`. What the program raises is raised, and also what it
    failed to take: the error of a task or of a callback, a deadlock, a livelock, too much virtual
    time. A note says the seed, the virtual time and the last events of the trace.
    """
    if hash_seed == "pinned":
        require_pinned_hash_seed()
    install()
    prepare_aiokafka()
    with _own_garbage():
        return _run(main, seed, options)


def _run(
    main: Callable[[VirtualEventLoop], Coroutine[Any, Any, Result]],
    seed: int,
    options: dict[str, Any],
) -> Result:
    loop = VirtualEventLoop(seed, **options)
    try:
        return _run_on(loop, main)
    except BaseException as error:
        error.add_note(_report(loop))
        raise


def _run_on(
    loop: VirtualEventLoop, main: Callable[[VirtualEventLoop], Coroutine[Any, Any, Result]]
) -> Result:
    runner = asyncio.Runner(loop_factory=lambda: loop)
    try:
        result = runner.run(main(loop))
        # The error of a task that nobody awaited is known once the task is gone.
        gc.collect()
        loop.raise_failure()
    except BaseException as error:
        loop.extend_limit(ENDING_S)
        loop.after_step = None  # it may be what failed, and would fail again before any task ends
        try:
            runner.close()
            loop.raise_failure()
        except BaseException as later:  # noqa: BLE001 - the first error is the one that counts
            error.add_note(f"and then, while its tasks were ended: {later!r}")
        raise
    runner.close()
    loop.raise_failure()
    return result


@contextmanager
def _own_garbage() -> Iterator[None]:
    """Let the collections in a run find what belongs to the run, and nothing of before.

    So the finalizers of another run's objects do not act on this one, and a collection takes no
    time: without this it is 40 ms where pytest and a client library are imported. The one at the end
    throws the run's own objects away, which nobody else would look for.

    Who has frozen objects before keeps them frozen. No more are frozen then, because they could not be
    told apart afterwards; what is garbage already goes before the run instead.
    """
    was_frozen = gc.get_freeze_count() > FROZEN_BY_PYTHON
    if was_frozen:
        gc.collect()
    else:
        gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        if not was_frozen:
            gc.unfreeze()


def _report(loop: VirtualEventLoop) -> str:
    events = "\n".join(f"  {event}" for event in loop.trace.recent[-12:])
    return (
        f"seed {loop.seed}, {loop.time()} s of virtual time, trace {loop.trace.digest()[:16]}; "
        f"last events:\n{events or '  none'}"
    )
