"""One run of a test under the faults of one schedule."""

from __future__ import annotations

import inspect
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.aiokafka_repairs import REPAIRS, repaired_aiokafka
from broker_sim.chaos.chaos import Chaos, failure_text, invariant_of
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.observer import observed
from broker_sim.chaos.recorder import Recorder
from broker_sim.chaos.settings import Settings
from broker_sim.chaos.sightings import names_in, places_in
from broker_sim.chaos.timeline import ORDER, Moment
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.log import DiskOptions
from broker_sim.runtime.event_log import quiet_logs
from broker_sim.runtime.links import CONTROLLER_ID, drawn_latency
from broker_sim.runtime.virtual import VirtualRun, garbage_of_one_run
from broker_sim.runtime.virtual.arrivals import ArrivalOrder, ExploredArrivals, GivenArrivals
from broker_sim.runtime.virtual.explored_order import ExploredOrder
from broker_sim.runtime.virtual.task_order import ARRIVAL, GivenOrder, deviation_text
from broker_sim.runtime.virtual.task_order import ORDER as ORDER_OF_TASKS

if TYPE_CHECKING:
    from asyncio import Handle
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from broker_sim.chaos.schedule import Schedule
    from broker_sim.chaos.sightings import FaultCount
    from broker_sim.config import GivenValue
    from broker_sim.page.recording import Recording
    from broker_sim.runtime.virtual.explored_order import SchedulingPoint
    from broker_sim.runtime.virtual.task_order import Deviation

    Races = ExploredOrder | ExploredArrivals
    Test = Callable[..., Coroutine[Any, Any, object]]
    _End = tuple[str, float, tuple[Deviation, ...]]

MIN_LATENCY_MS: Final = 0.5
"""Latency of a message in ms if the schedule has 0, so that time passes for clients that retry at once.

While a partition has no leader, aiokafka's producer requests metadata as fast as it gets responses.
"""
MAX_DEVIATIONS: Final = 20
"""Maximum number of deviations that a time line lists."""
TMP_PATH: Final = "tmp_path"
"""The pytest fixture that tests can also use without pytest."""
HISTORY: Final = "history"
"""The attribute of `Chaos` that must record requests from the beginning."""
LIMIT_S: Final = 3_600
"""Maximum virtual time of a run in seconds."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run."""

    schedule: Schedule
    digest: str
    """Hash of all events, the same for equal runs.

    It covers the traffic on the clients' network, starts and ends of workers, faults, and the brokers' delayed
    operations, each with its time, and the points at which the run was not first in, first out.
    """
    virtual_s: float
    moments: tuple[Moment, ...]
    invariant: str | None = None
    """The name of the violated invariant; None if the test passed."""
    error: BaseException | None = None
    """The error that failed the test; None if it passed."""
    repairs: tuple[str, ...] = ()
    """The repairs of aiokafka in the run."""
    deviations: tuple[Deviation, ...] = ()
    """Points at which the run was not first in, first out."""
    ran_on: str = ""
    """Versions on which runs of programs depend besides the schedule; empty without programs."""
    races: Races | None = None
    """In an exhaustive search, the turns at which another worker or broker could go first."""

    seen: Mapping[str, bool] = field(default_factory=dict)
    """Whether the run has seen each name of the test's `sometimes` and `reached`."""
    faults: Mapping[str, FaultCount] = field(default_factory=dict)
    """The number of faults of each kind that were drawn, happened and took effect."""

    recording: Recording | None = None
    """The recorded run for the page, if any."""

    @property
    def text(self) -> str:
        """The violated invariant in words; empty if the test passed."""
        return "" if self.error is None else failure_text(self.error)


class ScheduledRun(VirtualRun):
    """A run under one schedule, in steps: open, test, close; `run_whole` does all of them."""

    chaos: Chaos

    def __init__(
        self,
        schedule: Schedule,
        settings: Settings | None = None,
        *,
        observe: bool = False,
        record: bool = False,
        going_first: Mapping[SchedulingPoint, str] | None = None,
        repairs: Iterable[str] = (),
    ) -> None:
        """With `going_first` the run belongs to an exhaustive search over workers or brokers.

        `repairs` are repairs of aiokafka in addition to those of the settings. Raises ScheduleError.
        """
        for action in schedule.actions:
            check_action(action)
        self._settings = settings = settings or Settings()
        super().__init__(schedule.seed, order=schedule.order, limit_s=LIMIT_S)
        deviations = schedule.deviations
        self._tells_deviations = observe and len(deviations) <= MAX_DEVIATIONS
        if any(each.what == ORDER_OF_TASKS for each in deviations):
            order = self.loop.task_order = GivenOrder(self.loop.clock, deviations)
            if self._tells_deviations:
                order.on_deviation = self._note_deviation
        self._arrivals: ArrivalOrder | None = None
        """The order of messages between brokers during the test."""
        if any(each.what == ARRIVAL for each in deviations):
            self._arrivals = GivenArrivals(self.loop.clock, deviations)
        self.races: Races | None = None
        if going_first is not None and settings.exhaustive == "brokers":
            self._arrivals = self.races = ExploredArrivals(self.loop.clock, going_first)
        elif going_first is not None:
            self.loop.task_order = self.races = ExploredOrder(self.loop.clock, going_first)
        self._orders: list[Moment] = []
        self._schedule = schedule
        self._observe = observe
        self._records = record
        self._recorder: Recorder | None = None
        self._repairs = tuple(REPAIRS if settings.repair_aiokafka else repairs)
        self.loop.network.latency_ms = (0, schedule.latency_ms) if schedule.latency_ms else MIN_LATENCY_MS
        self._is_open = False
        self._ended: _End | None = None
        self._ran_on = ""
        self._open = ExitStack()

    def open_chaos(self) -> Chaos:
        """Start the brokers; return the argument of the test. Raises the errors of `AsyncCluster`."""
        kafka = SimulatedCluster(
            self.loop,
            self._schedule.brokers,
            topics=self._settings.topics,
            latency_ms=self._latency_of_links(),
            check_invariants=False,
            configs=self._settings.all_configs(),
            security=self._settings.security,
            users=self._settings.users,
            disk=self._disk(),
        )
        if self._repairs:
            self._open.enter_context(repaired_aiokafka(self._repairs))
        self.wait(kafka.open())
        for disk in kafka.disks.values():
            disk.sync_all()  # a directory that was never flushed would not exist after a power failure
        chaos = self.chaos = Chaos(self.loop, kafka, self._schedule)
        self._is_open = True
        self.loop.set_exception_handler(chaos.on_error)
        if isinstance(self.races, ExploredOrder):
            self._open.enter_context(self.races.watching())
        if self._arrivals is not None:
            kafka.nodes.links.choose_arrival = self._arrivals.choose
            if self._tells_deviations:
                self._arrivals.on_deviation = self._note_arrival
        self._open.enter_context(observed(chaos, self.loop) if self._observe else quiet_logs())
        if self._records:
            self._recorder = Recorder(kafka, self.loop)
            chaos.watch(self._recorder.look)
        return chaos

    def _latency_of_links(self) -> Callable[[int, int], int] | None:
        most_ms = self._schedule.latency_ms
        return drawn_latency(self.loop.stream("links"), most_ms) if most_ms else None

    def _disk(self) -> DiskOptions | None:
        """Return the options of simulated disks, None unless the schedule has power failures."""
        kinds = {action.kind for action in self._schedule.actions}
        return DiskOptions() if "lose_power" in kinds else None

    def _note_deviation(self, ready: Sequence[Handle], number: int) -> None:
        if number > 1:
            self._orders.pop()
        self._orders.append(Moment(self.loop.time(), ORDER, deviation_text(ready, number)))

    def _note_arrival(self, first: tuple[int, int], before: tuple[int, int]) -> None:
        target, one, other = map(_node_name, (first[1], first[0], before[0]))
        text = f"{target} receives a message from {one} before one from {other}"
        self._orders.append(Moment(self.loop.time(), ORDER, text))

    def close_chaos(self) -> None:
        """End the workers, then stop the brokers."""
        self._end_test()
        self._open.close()
        self.wait(self.chaos.kafka.close())

    def close(self) -> None:
        """End all tasks and the loop; resources of killed workers cause no warnings."""
        with self._open, warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            super().close()

    def wait_for_test(self, test: Coroutine[Any, Any, object]) -> None:
        """Run the test to its end; raises its errors."""
        if inspect.iscoroutine(test):
            for name in sorted(places_in(test)):
                self.chaos.seen.setdefault(name, False)
            if HISTORY in names_in(test):
                self.chaos.begin_history()

        async def main() -> None:
            try:
                await test
                self.chaos.look()
            finally:
                self._end_test()

        self.wait(main(), name=getattr(test, "__qualname__", None))

    def on_failure(self, error: BaseException) -> None:
        """Record the moment of the failure, before the test's context managers close."""
        del error
        self._end_test()

    def _end_test(self) -> None:
        if self._ended is None and self._is_open:
            self._ended = self._now()
            self._ran_on = self.chaos.kafka.program_surroundings()
            self.chaos.kafka.nodes.links.choose_arrival = None
            if self._recorder is not None:
                self._recorder.end()
            self.chaos.end()

    def _now(self) -> _End:
        order = self.loop.task_order
        deviations = () if order is None else order.deviations
        arrivals = () if self._arrivals is None else self._arrivals.deviations
        all_deviations = *deviations, *arrivals
        digest = self.loop.trace.digest()
        if all_deviations:  # memory that workers share is not in any message
            digest = sha256(f"{digest} {all_deviations!r}".encode()).hexdigest()
        return digest, self.loop.time(), all_deviations

    def run_whole(self, test: Test) -> Outcome:
        """Open, test and close; return the outcome. Raises the errors of `open_chaos`.

        A test with an argument `tmp_path` gets an empty directory.
        """
        error: Exception | None = None
        try:
            chaos = self.open_chaos()
            try:
                self.wait_for_test(self._called(test, chaos))
                self.raise_unhandled()
            except Exception as raised:  # noqa: BLE001 - every error is an outcome
                error = raised
            self.close_chaos()
        finally:
            self.close()
        return self.outcome(error)

    def _called(self, test: Test, chaos: Chaos) -> Coroutine[Any, Any, object]:
        parameters = inspect.signature(test).parameters
        if TMP_PATH not in parameters:
            return test(chaos)
        directory = Path(self._open.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        name = next(each for each in parameters if each != TMP_PATH)
        return test(**{name: chaos, TMP_PATH: directory})

    def outcome(self, error: BaseException | None = None) -> Outcome:
        """Return the outcome of the run, with the error that failed it."""
        digest, virtual_s, deviations = self._ended or self._now()
        invariant = None if error is None else invariant_of(error)
        moments = *self._orders, *(self.chaos.timeline.moments if self._is_open else ())
        recorder = self._recorder
        return Outcome(
            self._schedule,
            digest,
            virtual_s,
            moments,
            invariant,
            error,
            tuple(REPAIRS[name] for name in self._repairs),
            deviations,
            self._ran_on,
            self.races,
            seen=self.chaos.seen if self._is_open else {},
            faults=self.chaos.fault_counts() if self._is_open else {},
            recording=None if recorder is None else recorder.finish(moments, self._schedule.actions, virtual_s),
        )


def run_chaos(
    test: Test,
    schedule: Schedule,
    *,
    observe: bool = False,
    configs: Mapping[str, GivenValue] | None = None,
    topics: Sequence[str] = (),
    security: str | None = None,
    users: Mapping[str, str] | None = None,
    repair_aiokafka: bool = False,
) -> Outcome:
    """Run `test(chaos)` on a cluster of its own in virtual time, with the faults of the schedule.

    An error of the test is part of the outcome. With `observe` the time line also has leaders, failed requests and
    log records; that takes longer. The other arguments are fields of `Settings`. Raises ConfigError, ScheduleError,
    and the errors of `AsyncCluster`.
    """
    settings = Settings(configs=configs, topics=topics, security=security, users=users, repair_aiokafka=repair_aiokafka)
    with garbage_of_one_run():
        return ScheduledRun(schedule, settings, observe=observe).run_whole(test)


def _node_name(node: int) -> str:
    return "the controller" if node == CONTROLLER_ID else f"broker {node}"
