"""Records a run of a test for the page: pictures of the cluster, requests, faults and the time line."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker_sim.chaos.timeline import FAULT
from broker_sim.cluster.status.picture import picture
from broker_sim.page.recording import MAX_REQUESTS, Band, RecordedMoment, RecordedRequest, Recording
from broker_sim.runtime.links import CONTROLLER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.chaos.faults.action import Action
    from broker_sim.chaos.timeline import Moment
    from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
    from broker_sim.runtime.links import Call
    from broker_sim.runtime.virtual import VirtualEventLoop


class Recorder:
    """Takes pictures of a run without changing anything, so that the run stays the same."""

    def __init__(self, kafka: SimulatedCluster, loop: VirtualEventLoop) -> None:
        self._kafka = kafka
        self._clock = loop.clock
        self.recording = Recording()
        self._calls: deque[Call] = deque(maxlen=MAX_REQUESTS)
        kafka.nodes.links.calls = self._calls

    def look(self) -> None:
        """Take a picture if the last one is old enough."""
        if self.recording.is_due(self._clock.now_ms()):
            self._take()

    def end(self) -> None:
        """Take the last picture, and collect the requests."""
        self._take()
        began_ms = self._clock.wall_clock_ms() - self._clock.now_ms()
        requests = [
            RecordedRequest(
                one.received_ms - began_ms,
                one.elapsed_ms,
                one.client_id or "client",
                one.broker,
                one.api,
                tuple(error.name for error in one.errors),
            )
            for one in self._kafka.requests()
        ]
        requests += [_request_of(each) for each in self._calls if each.callee != CONTROLLER_ID]
        self.recording.requests = sorted(requests, key=lambda one: one.at_ms)

    def _take(self) -> None:
        seen = picture(self._kafka.nodes, counts_requests=False)
        self.recording.take(seen.at_ms, seen.parts)

    def finish(self, moments: Sequence[Moment], actions: Iterable[Action], end_s: float) -> Recording:
        """Add the time line and the faults; return the recording."""
        recording = self.recording
        recording.moments = [RecordedMoment(each.at_s * 1_000, each.who, each.what) for each in moments]
        recording.bands = list(bands_of(moments, actions, round(end_s * 1_000)))
        return recording


def _request_of(call: Call) -> RecordedRequest:
    """Return a request between brokers, with a client id like that of Kafka's followers."""
    elapsed_ms = None if call.ended_ms is None else call.ended_ms - call.begun_ms
    return RecordedRequest(call.begun_ms, elapsed_ms, f"replica-{call.source}", call.callee, call.api, ())


def bands_of(moments: Iterable[Moment], actions: Iterable[Action], end_ms: int) -> Iterable[Band]:
    """Yield each fault of a time line with its begin and end; a fault without an end lasts until `end_ms`."""
    faults = [each for each in sorted(moments, key=lambda each: each.at_s) if each.who == FAULT]
    for action in actions:
        begin = next((each for each in faults if each.what == " ".join(action.describe().split())), None)
        if begin is None:
            continue
        what = " ".join(f"end of {action.kind} {' '.join(action.on)}".split())
        end_s = next((each.at_s for each in faults if each.what == what and each.at_s >= begin.at_s), None)
        to_ms = end_ms if end_s is None and action.for_ms else begin.at_s * 1_000 if end_s is None else end_s * 1_000
        yield Band(round(begin.at_s * 1_000), round(to_ms), action.describe(), action.on)
