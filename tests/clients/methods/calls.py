"""Calls of a client's methods, told as JSON lines; runs in the client's own environment.

`served` is for a method whose outcome must be the same on every Kafka, `refused` for one that the
simulator does not serve and must refuse at once, `local` for one that only changes the client.
"""

import asyncio
import faulthandler
import json
import os
import re
import sys
import time
from concurrent.futures import Future

WAIT_S = 40
HANGS_S = 220
"""Longer than a program ever takes; then it shows where each of its threads is, and ends."""
NOT_YET = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_NOENT"}
"""Errors of a broker that has not heard of a new topic: served methods are called again."""


def seen_within(wait_s, condition):
    """Ask until `condition()` holds or the time is over; return whether it does."""
    deadline = time.monotonic() + wait_s
    while not (seen := condition()) and time.monotonic() < deadline:
        pass
    return seen


class Calls:
    """Makes the calls and prints an outcome for each; `only_served` leaves the refused ones out."""

    def __init__(self, *classes):
        faulthandler.dump_traceback_later(HANGS_S, exit=True)
        self.bootstrap_servers, self.topic, mode = sys.argv[1:]
        self._only_served = mode == "served"
        self._public = {
            f"{cls.__name__}.{name}"
            for cls in classes
            for name in dir(cls)
            if not name.startswith("_") and callable(getattr(cls, name))
        }
        self._called = set()

    @staticmethod
    def raised(answer):
        """Raise an error that a client returns inside of an answer."""
        if re.search(r"UnsupportedVersion|error(_code)?\W+35\b", str(answer)):
            raise RuntimeError(str(answer))
        return answer

    def served(self, method, function):
        """Call a method that answers alike everywhere; `function` returns what is compared."""
        self._call("served", method, function)

    def refused(self, method, function):
        """Call a method that is not served."""
        if self._only_served:
            self._called.add(method)
        else:
            self._call("refused", method, function)

    async def aserved(self, method, function):
        """Call a coroutine method that answers alike everywhere."""
        await self._acall("served", method, function)

    async def arefused(self, method, function):
        """Call a coroutine method that is not served."""
        if self._only_served:
            self._called.add(method)
        else:
            await self._acall("refused", method, function)

    def leave_out(self, reason, *methods):
        """Say why methods are not called."""
        assert reason
        self._called.update(methods)

    def end(self):
        """Print which public methods nobody called, and end the process with all its threads."""
        print(json.dumps({"not_called": sorted(self._public - self._called)}), flush=True)
        os._exit(0)

    def _call(self, kind, method, function):
        if not self._has(method):
            return
        started = time.monotonic()
        while True:
            try:
                outcome = _shown(_resolved(function()))
            except Exception as error:
                outcome = _named(error)
            too_early = outcome.get("error") in NOT_YET and kind == "served"
            if not too_early or time.monotonic() - started > WAIT_S:
                break
            time.sleep(0.05)
        self._tell(kind, method, outcome, started)

    async def _acall(self, kind, method, function):
        if not self._has(method):
            return
        started = time.monotonic()
        try:
            value = function()
            if asyncio.iscoroutine(value) or asyncio.isfuture(value):
                value = await asyncio.wait_for(value, WAIT_S)
            outcome = _shown(value)
        except Exception as error:
            outcome = _named(error)
        self._tell(kind, method, outcome, started)

    def _has(self, method):
        self._called.add(method)
        return method in self._public

    def _tell(self, kind, method, outcome, started):
        seconds = time.monotonic() - started
        line = {"kind": kind, "method": method, "outcome": outcome, "seconds": seconds}
        print(json.dumps(line), flush=True)


def _resolved(value):
    """Wait for the futures of confluent-kafka's admin methods; one that fails is raised."""
    if isinstance(value, Future):
        return _resolved(value.result(WAIT_S))
    if isinstance(value, dict):
        return {str(key): _resolved(inner) for key, inner in value.items()}
    return value


def _shown(value):
    if isinstance(value, list):
        return {"ok": [item if isinstance(item, int | str) else "something" for item in value]}
    plain = value is None or isinstance(value, bool | int | str)
    return {"ok": value if plain else "something"}


def _named(error):
    inner = error.args[0] if error.args else None
    name = inner.name() if hasattr(inner, "name") and callable(inner.name) else type(error).__name__
    return {"error": name, "text": str(error)[:200]}
