"""Turns a trace into a recorded run, by parking its operations again in purgatories that follow the trace's time.

So the wheels in the pictures are real wheels that started with the trace. A trace has only delayed operations and
their requests, no brokers, partitions or groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, VirtualTimer

from broker_sim.cluster.status.picture import purgatory_part
from broker_sim.errors import ErrorCode
from broker_sim.page.recording import RecordedEnd, RecordedRequest, RecordedRun, Recording
from broker_sim.trace.lines import IDS_PER_LIFE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.trace.reading import Event

CLIENT: Final = "client"
"""Name of a client without a client id."""
WAITS_FOR: Final = {
    "Produce": "all in-sync replicas to have its records",
    "Fetch": "records",
    "ShareFetch": "records",
}


class _Parked(DelayedOperation):
    """An operation that waits until its end in the trace."""

    def __init__(self, event: Event) -> None:
        super().__init__(event["delay_ms"], one_thread=True)
        self.client_id = event["client_id"]
        self.start = event

    def try_complete(self) -> bool:
        """Wait."""
        return False

    def on_complete(self) -> None:
        """Do nothing."""

    def on_expiration(self) -> None:
        """Do nothing."""


class _Purgatory:
    """One purgatory of one broker, for one life of the broker's process."""

    def __init__(self, name: str, broker: int, life: int, now_ms: int) -> None:
        self.life = life
        self.name = name
        self.broker = broker
        self.operations: dict[int, _Parked] = {}
        self.completed = self.expired = 0
        self._timer = VirtualTimer(start_ms=now_ms)
        self._purgatory: DelayedOperationPurgatory[_Parked] = DelayedOperationPurgatory(name, self._timer)

    def park(self, event: Event, now_ms: int) -> None:
        """Park an operation."""
        self._timer.advance_to(now_ms)
        operation = self.operations[event["operation_id"]] = _Parked(event)
        self._purgatory.try_complete_else_watch(operation, event["keys"] or [""])

    def end(self, event: Event, now_ms: int) -> _Parked | None:
        """End an operation and return it; None if it never waited."""
        self._timer.advance_to(now_ms)
        self.completed += event["event"] == "completed"
        self.expired += event["event"] == "expired"
        operation = self.operations.pop(event["operation_id"], None)
        if operation is not None:
            operation.force_complete()
        return operation

    def part(self, now_ms: int) -> dict[str, Any]:
        """Return the purgatory's part of the picture at that time."""
        self._timer.advance_to(now_ms)
        part = purgatory_part(self.broker, self._purgatory, _waits_for)
        parked = [{**one, "operation": f"Delayed{self.name}"} for one in part["parked"]]
        return {**part, "parked": parked, "completed": self.completed, "expired": self.expired}


class TracedRun:
    """The first run in a trace, built event by event."""

    def __init__(self) -> None:
        self.run_id: str | None = None
        self.other_runs: set[str] = set()
        """The ids of further runs in the trace, which are ignored."""
        self._began_ms = 0
        self._now_ms = 0
        self._recording = Recording()
        self._purgatories: dict[tuple[int, str], _Purgatory] = {}
        self._requests: list[RecordedRequest] = []
        self._ended: list[RecordedEnd] = []

    def add(self, event: Event) -> None:
        """Add the next event of the trace."""
        if self.run_id is None:
            self.run_id, self._began_ms = event["run_id"], event["ts_ms"]
        if event["run_id"] != self.run_id:
            self.other_runs.add(event["run_id"])
            return
        # Several threads write to a trace, so an event may be a millisecond older than the previous one.
        now_ms = max(event["ts_ms"] - self._began_ms, self._now_ms)
        if now_ms > self._now_ms and self._recording.is_due(self._now_ms):
            self._look()
        self._now_ms = now_ms
        key = event["broker"], event["purgatory"]
        life = event["operation_id"] // IDS_PER_LIFE
        purgatory = self._purgatories.get(key)
        if purgatory is None or purgatory.life < life:  # a killed broker has lost its parked operations
            purgatory = self._purgatories[key] = _Purgatory(event["purgatory"], event["broker"], life, now_ms)
        if event["event"] == "parked":
            purgatory.park(event, now_ms)
        elif event["event"] != "tried":
            operation = purgatory.end(event, now_ms)
            self._note_end(event, operation, now_ms)

    def _note_end(self, event: Event, operation: _Parked | None, now_ms: int) -> None:
        since_ms = now_ms - (event["waited_ms"] or 0)
        if event["api"] is not None and event["event"] != "cancelled":
            errors = (ErrorCode(event["error_code"]).name,) if event["error_code"] else ()
            request = RecordedRequest(since_ms, now_ms - since_ms, _name(event), event["broker"], event["api"], errors)
            self._requests.append(request)
        if operation is not None:
            self._ended.append(
                RecordedEnd(
                    now_ms, since_ms, event["broker"], event["purgatory"], event["operation_id"], event["client_id"],
                    tuple(event["keys"]), event["event"] == "expired", _by(event),
                )
            )  # fmt: skip

    def _look(self) -> None:
        parts = {
            f"purgatory/{broker}/{name}": one.part(self._now_ms) for (broker, name), one in self._purgatories.items()
        }
        self._recording.take(self._now_ms, parts)

    def run(self, title: str) -> RecordedRun:
        """Return the run."""
        self._look()
        for purgatory in self._purgatories.values():
            for operation in purgatory.operations.values():
                start = operation.start
                if start["api"] is not None:
                    at_ms = start["ts_ms"] - self._began_ms
                    self._requests.append(RecordedRequest(at_ms, None, _name(start), start["broker"], start["api"], ()))
        recording = self._recording
        recording.requests = sorted(self._requests, key=lambda one: one.at_ms)
        recording.ended = self._ended
        return recording.run(title, None, self._now_ms)


def traced_run(events: Iterable[Event]) -> TracedRun:
    """Return the run of these events."""
    run = TracedRun()
    for event in events:
        run.add(event)
    return run


def _name(event: Event) -> str:
    client: str = event["client_id"] or CLIENT
    return client


def _by(event: Event) -> str:
    by = event["completed_by"]
    if event["event"] == "expired":
        return f"it expired, {event['lateness_ms'] or 0} ms late"
    if event["event"] == "cancelled":
        return "it was cancelled"
    return f"an event on {by.removeprefix('key:')}" if by and by.startswith("key:") else by or "its condition was met"


def _waits_for(name: str, keys: Iterable[object]) -> str:
    del keys
    return WAITS_FOR.get(name, "an event on its keys")
