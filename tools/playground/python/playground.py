"""The functions that the page's worker calls: each takes plain values and returns JSON.

The search, the shrinker, the report and the timer are the product's own; here is only what carries them to the page.
"""

from __future__ import annotations

import importlib
import inspect
import json
import linecache
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import playground_cluster  # it imports aiokafka, which programs then find imported
import playground_wheel

from broker_sim.chaos import search
from broker_sim.errors import ConfigError
from broker_sim.page.recording import data_of
from broker_sim.runtime.virtual import install
from broker_sim.runtime.virtual.stdlib.kafka_clients import prepare_aiokafka
from broker_sim.testing import VIRTUAL_MARKER
from broker_sim.testing.options import VirtualTimeOptions
from broker_sim.testing.seeded_run import SeededRun

FOLDER = Path("/home/pyodide")


def use(files):
    """Write the files of the editor, and forget those of before; return the tests of the first one, or its error."""
    files = json.loads(files)
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)
        path.unlink()
    for name, text in files.items():
        (FOLDER / f"{name}.py").write_text(text, "utf-8")
        sys.modules.pop(name, None)
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    importlib.invalidate_caches()
    linecache.checkcache()
    search.load_test.cache_clear()
    module = next(iter(files))
    try:
        members = vars(importlib.import_module(module))
    except Exception as error:  # noqa: BLE001 - it is the program's
        return json.dumps({"error": _error(error)})
    tests = [name for name, each in members.items() if _marker(each, search.MARKER) or _marker(each, VIRTUAL_MARKER)]
    return json.dumps({"tests": tests})


def _marker(function, name):
    """Return the mark of that name which a function has, None without it."""
    return next((mark for mark in getattr(function, "pytestmark", ()) if mark.name == name), None)


@dataclass(frozen=True)
class _Test(search.NamedTest):
    """A test that tells the page of each run, as shrinking takes a while."""

    def run(self, schedule, **options):
        outcome = super().run(schedule, **options)
        if _on_run is not None:
            _on_run()
        return outcome


_last = []
"""The test that was examined last, and its failure."""
_on_run = None
"""Called after each run of a search that makes a failure small."""


def _test(name, settings):
    return _Test.of(name, **json.loads(settings))


class _VirtualTest:
    """A test marked `virtual_time`; the settings of the page are those of tests under chaos."""

    def __init__(self, function, options):
        self.function = function
        self.options = options

    @classmethod
    def of(cls, name):
        """Return the test of that name, None for one under chaos. Raises ConfigError for a wrong marker."""
        module, _, function = name.partition(":")
        member = getattr(sys.modules[module], function)
        mark = _marker(member, VIRTUAL_MARKER)
        if mark is None:
            return None
        options = VirtualTimeOptions(**mark.kwargs)
        options.check()
        return cls(member, options)

    def run(self, seed):
        """Run a seed; return its error, None if it passes, its digest and its virtual seconds."""
        install()
        prepare_aiokafka()
        run = SeededRun(self.options, seed)
        takes_cluster = "kafka" in inspect.signature(self.function).parameters
        error = None
        try:
            run.wait_for_test(self.function(*([run.open_cluster()] if takes_cluster else [])))
        except Exception as failure:  # noqa: BLE001 - it is the program's
            error = failure
        virtual_s = run.loop.time()
        if takes_cluster:
            run.close_cluster()
        run.close()
        return error, run.loop.trace.digest(), virtual_s


def check(name, settings):
    """Return the error of the settings, None if they can be used."""
    try:
        if (test := _VirtualTest.of(name)) is not None:
            return json.dumps({"seeds": test.options.seeds})
        test = _test(name, settings)
        list(test.settings.schedules())[:1]
    except (search.NoSuchTestError, ConfigError, TypeError) as error:
        return json.dumps({"error": {"text": str(error), "places": []}})
    return json.dumps({"seeds": test.settings.seeds})


def run_seed(name, settings, seed):
    """Run one seed."""
    began = time.perf_counter()
    if (virtual := _VirtualTest.of(name)) is not None:
        error, digest, virtual_s = virtual.run(seed)
        text = None if error is None else str(error)
        return json.dumps(
            {
                "seed": seed, "invariant": None if error is None else type(error).__name__, "text": text,
                "digest": digest, "faults": 0, "virtual_s": virtual_s, "s": time.perf_counter() - began,
            }
        )  # fmt: skip
    test = _test(name, settings)
    outcome = test.run(test.draw(seed))
    return json.dumps(
        {
            "seed": seed, "invariant": outcome.invariant, "text": outcome.text, "digest": outcome.digest,
            "faults": len(outcome.schedule.actions), "virtual_s": outcome.virtual_s, "s": time.perf_counter() - began,
        }
    )  # fmt: skip


def examine(name, settings, seed, on_run=None):
    """Shrink a seed that fails, and return what `broker-sim chaos` prints of it, and the parts that the page draws."""
    global _on_run
    if (virtual := _VirtualTest.of(name)) is not None:
        return json.dumps({"seed": seed, "wrong": _error(virtual.run(seed)[0])})
    test = _test(name, settings)
    began = time.perf_counter()
    _on_run = on_run
    try:
        failure = test.examine(test.draw(seed))
    finally:
        _on_run = None
    if failure is None:
        return json.dumps(None)
    _last[:] = test, failure
    small = failure.small
    return json.dumps(
        failure.to_json()
        | {
            "report": str(failure), "as_test": failure.as_test(), "drawn": str(failure.first.schedule),
            "course": [_fault(action) for action in small.schedule.actions],
            "traceback": None if small.error is None else _error(small.error), "s": time.perf_counter() - began,
        }
    )  # fmt: skip


def recording():
    """Return the run that was examined last as page/replay.js reads it: base64 of compressed JSON."""
    test, failure = _last
    return json.dumps(data_of(test.page_of(failure.small).html))


def _fault(action):
    return {
        "at_s": action.at_ms / 1_000,
        "for_s": action.for_ms / 1_000,
        "text": action.describe(),
        "kind": action.kind,
    }


def _error(error):
    """Return an error in words, with the lines of the program through which it went, innermost last."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    places = [
        {"file": Path(frame.filename).stem, "line": frame.lineno, "function": frame.name}
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(str(FOLDER))
    ]
    if isinstance(error, SyntaxError) and error.filename and error.filename.startswith(str(FOLDER)):
        places.append({"file": Path(error.filename).stem, "line": error.lineno, "function": ""})
    text = "".join(traceback.format_exception_only(error)).strip()
    return {"text": text, "places": places}


def cluster(verb, values):
    """Do one thing to the cluster of the page; see `playground_cluster`."""
    return playground_cluster.do(verb, values)


def wheel(verb, value):
    """Do one thing to the timing wheel of the page; see `playground_wheel`."""
    return playground_wheel.do(verb, value)


def lesson(name):
    """Play a lesson to its end; see `playground_lessons`, which the worker has unpacked before."""
    importlib.invalidate_caches()
    return json.dumps(importlib.import_module("playground_lessons").play_named(name))
