"""A search whose workers are programs, without a test function: `broker-sim chaos --virtual -- COMMAND`."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.report import PythonCode
from broker_sim.chaos.search import ApplicationTest, NoSuchTestError, load_test
from broker_sim.chaos.settings import Settings
from broker_sim.runtime.virtual import garbage_of_one_run

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from broker_sim.chaos.chaos import Chaos
    from broker_sim.chaos.run import Outcome, ScheduledRun

    Step = Callable[[Chaos], Coroutine[Any, Any, object]]

SETTLE_S: Final = 30.0
"""Virtual seconds that workers continue after the faults in a run without a check."""
CHECK: Final = "check"
PREPARE: Final = "prepare"
"""Name of an optional function in the file with the check, which runs before the workers."""


def program_workers(
    *command: str, prepare: Step | None = None, check: Step | None = None, judgements: Sequence[str] = ()
) -> Step:
    """Return a test whose workers all run a command; the schedule has their number.

    `prepare(chaos)` is awaited before they start, and `check(chaos)` when the faults are over; without a check they run
    for 30 virtual seconds more. Then the `judgements`, in the form of `History.judge`, must hold. With neither, a
    worker that ends on its own with an exit code other than 0 fails the test.
    """

    async def test(chaos: Chaos) -> None:
        history = chaos.history if judgements else None
        if prepare is not None:
            await prepare(chaos)
        may_fail = check is not None or history is not None
        chaos.start(chaos.program(*command, may_fail=may_fail), count=chaos.schedule.workers)
        await chaos.faults_over()
        if check is None:
            await asyncio.sleep(SETTLE_S)
        else:
            await check(chaos)
        if history is not None:
            for text in judgements:
                await history.judge(text)

    return test


@dataclass(frozen=True)
class ProgramTest(ApplicationTest):
    """A command that all workers run; can be sent to another process."""

    command: tuple[str, ...]
    check: str = ""
    """`module:function` of the check after the faults; empty if instead no worker may fail."""
    settings: Settings = field(default_factory=Settings)
    judgements: tuple[str, ...] = ()
    """Judgements, in the form of `History.judge`, that must hold after the faults."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The command."""
        return " ".join(self.command)

    def play(self, begin: Callable[[], ScheduledRun]) -> Outcome:
        """Run the workers, and the check."""
        check = load_test(self.check) if self.check else None
        prepare = load_test(f"{self._module}:{PREPARE}") if self._prepares() else None
        workers = program_workers(*self.command, prepare=prepare, check=check, judgements=self.judgements)
        with garbage_of_one_run():
            return begin().run_whole(workers)

    def in_python(self) -> PythonCode:
        """Return the call of `program_workers`."""
        arguments = [repr(word) for word in self.command]
        imports = "from broker_sim.chaos import Schedule, program_workers, run_chaos"
        if self._prepares():
            arguments.append(f"prepare={self._module}.{PREPARE}")
        if self.check:
            arguments.append(f"check={self.check.replace(':', '.')}")
            imports = f"import {self._module}\n{imports}"
        if self.judgements:
            arguments.append(f"judgements={[*self.judgements]}")
        return PythonCode(imports, f"program_workers({', '.join(arguments)})")

    @property
    def _module(self) -> str:
        return self.check.partition(":")[0]

    def _prepares(self) -> bool:
        return bool(self.check) and hasattr(importlib.import_module(self._module), PREPARE)


def check_of(text: str) -> str:
    """Return `CHECK.py::function`, or `CHECK.py` for its function `check`, as `module:function`.

    Raises NoSuchTestError.
    """
    file, _, function = text.partition("::")
    path = Path(file).resolve()
    if not path.is_file():
        raise NoSuchTestError(f"{file}: file not found; pass CHECK.py or CHECK.py::function")
    here = Path.cwd()
    parts = path.relative_to(here).with_suffix("").parts if path.is_relative_to(here) else ()
    if not parts or not all(part.isidentifier() for part in parts):
        raise NoSuchTestError(f"{file}: Python must be able to import it from the current directory; move or rename it")
    name = f"{'.'.join(parts)}:{function or CHECK}"
    load_test(name)
    module_file = importlib.import_module(".".join(parts)).__file__
    if module_file is None or Path(module_file).resolve() != path:
        raise NoSuchTestError(f"{file}: another module has its name, {module_file}; rename it")
    return name
