"""Makes freezegun and time-machine, which replace clocks too, work in a process that has used a virtual loop.

time-machine expects the C functions in `time`, and freezegun restores those that it saw first. So our replacements
are removed while one of the tools starts or stops. In real time both work as usual: our replacements call theirs.
In the code of a virtual loop they are refused, because the loop controls the time.
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
    """Prepare both tools, now or when the program imports them; called once in a process.

    `without_replacements()` is a context in which the standard library is as it was before.
    """

    def prepare_freezegun(module: Any) -> None:
        _prepare(module._freeze_time, "freezegun", without_replacements)

    # Both tools look functions up during their import.
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
    """Raise EscapeError if one of the tools is active: a virtual run cannot start then."""
    freezegun, time_machine = sys.modules.get("freezegun.api"), sys.modules.get("time_machine")
    if freezegun is not None and freezegun.freeze_factories:
        raise EscapeError(f"freezegun: {ADVICE}")
    if time_machine is not None and time_machine.escape_hatch.is_travelling():
        raise EscapeError(f"time-machine: {ADVICE}")
