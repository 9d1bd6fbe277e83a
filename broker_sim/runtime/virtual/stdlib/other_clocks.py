"""Other tools that replace the clocks, freezegun and time-machine, in a process that has a virtual loop.

time-machine takes functions of `time` for those in C, and freezegun puts back those that it has seen first. So ours
are taken out while one of them begins or ends. In tests in real time they do what they do otherwise: ours ask what
they have put in. In the code of a virtual loop they are refused, because its time passes by itself.
"""

from __future__ import annotations

import sys
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.core.errors import EscapeError
from broker_sim.runtime.virtual.loop import current_loop
from broker_sim.runtime.virtual.stdlib.kafka_clients import when_imported

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Without = Callable[[], AbstractContextManager[None]]

ADVICE: Final = (
    "virtual time has a clock of its own, which begins in November 2023; let time pass with asyncio.sleep, or use the "
    "fixture kafka in a test that is not marked virtual_time"
)


@cache
def prepare_other_clocks(without_replacements: Without) -> None:
    """Prepare both tools, now or when the program imports them; a process does so once.

    `without_replacements()` is a context in which the standard library is as it was before.
    """

    def prepare_freezegun(module: Any) -> None:
        _prepare(module._freeze_time, "freezegun", without_replacements)

    # Both look functions up when they are imported.
    when_imported("_time_machine", during=without_replacements)
    when_imported("freezegun.api", prepare_freezegun, without_replacements)
    when_imported("time_machine", lambda module: _prepare(module.travel, "time-machine", without_replacements))


def _prepare(kind: Any, name: str, without_replacements: Without) -> None:
    real_start, real_stop = kind.start, kind.stop

    @wraps(real_start)
    def start(self: Any) -> Any:
        loop = current_loop()
        if loop is not None:
            loop.refuse(f"{name}: {ADVICE}")
        with without_replacements():
            return real_start(self)

    @wraps(real_stop)
    def stop(self: Any) -> Any:
        with without_replacements():
            return real_stop(self)

    kind.start, kind.stop = start, stop


def require_real_clocks() -> None:
    """Raise EscapeError while time is frozen or travels: a virtual run would begin in it."""
    freezegun, time_machine = sys.modules.get("freezegun.api"), sys.modules.get("time_machine")
    if freezegun is not None and freezegun.freeze_factories:
        raise EscapeError(f"freezegun: {ADVICE}")
    if time_machine is not None and time_machine.escape_hatch.is_travelling():
        raise EscapeError(f"time-machine: {ADVICE}")
