"""Carries the actions of a schedule out, on a cluster in virtual time and on the workers beside it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.chaos.kinds import BROKERS, KINDS
from broker_sim.chaos.schedule import ScheduleError
from broker_sim.chaos.timeline import FAULT
from broker_sim.cluster.combined_faults import CombinedFaults
from broker_sim.errors import ApiError, WrongStateError
from broker_sim.handlers.faults import Fault
from broker_sim.metadata.topic_name import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    is_internal_topic,
)
from broker_sim.runtime.links import LinkFault
from broker_sim.runtime.process import ProcessState
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.chaos.schedule import Action
    from broker_sim.chaos.timeline import Timeline
    from broker_sim.chaos.worker import Worker
    from broker_sim.cluster.simulated_cluster import SimulatedCluster
    from broker_sim.runtime.virtual import VirtualEventLoop

    Undo = Callable[[], object]

__all__ = ["Faults"]

HITS = 3
"""So many requests an `error`, `lose` or `delay` hits before it ends."""


class Faults:
    """The faults of one run; several may concern the same broker, worker or link."""

    def __init__(
        self,
        loop: VirtualEventLoop,
        kafka: SimulatedCluster,
        workers: Sequence[Worker],
        timeline: Timeline,
    ) -> None:
        self.in_force = 0
        """How many are under way, brokers that shut down among them."""
        self._loop = loop
        self._kafka = kafka
        self._workers = workers
        self._timeline = timeline
        self._combined = CombinedFaults(kafka.nodes, loop.network)

    def schedule(self, actions: Iterable[Action]) -> None:
        """Carry each action out when its time has come, counted from now. Raises ScheduleError."""
        for action in actions:
            begin = partial(self._begin, action, self._bound(action))
            self._loop.call_later(action.at_ms / 1000, begin)

    def _bound(self, action: Action) -> Callable[[], Undo | None]:
        """Return what carries the action out; ScheduleError if it cannot mean anything."""
        kind = KINDS.get(action.kind)
        if kind is None:
            raise ScheduleError(
                f"{action}: there is no kind {action.kind!r}; see {', '.join(KINDS)}"
            )
        method = getattr(self, f"_{action.kind}")
        values: list[Any] = [action.value] if kind.values else []
        if kind.on == BROKERS and action.on in {(), (BROKERS,)}:
            return lambda: method(None, *values)
        place, _, number = (action.on[0] if action.on else "").partition("-")
        wanted = kind.on.removesuffix("s")
        if place != wanted or not number.isdecimal():
            raise ScheduleError(f"{action}: say on which {wanted}, as {wanted}-1")
        if kind.whole_side:
            values.insert(0, action.on[1] if len(action.on) > 1 else BROKERS)
        if kind.on == "worker":
            return lambda: method(self._worker(int(number)), *values)
        return lambda: method(self._kafka.nodes.node(int(number)).broker_id, *values)

    def _begin(self, action: Action, carry_out: Callable[[], Undo | None]) -> None:
        try:
            undo = carry_out()
        except (ApiError, WrongStateError) as error:
            self._timeline.note(FAULT, f"{action.describe()}: not done, {error}")
            return
        self._loop.trace.record("fault", str(action))
        self._timeline.note(FAULT, action.describe())
        if undo is not None:
            self.in_force += 1
            self._loop.call_later(action.for_ms / 1000, partial(self._end, action, undo))

    def _end(self, action: Action, undo: Undo) -> None:
        self._timeline.note(FAULT, f"end of {action.kind} {' '.join(action.on)}")
        undo()
        self.in_force -= 1

    # -- on workers -------------------------------------------------------------------------------

    def _worker(self, number: int) -> Worker:
        if not 0 < number <= len(self._workers):
            raise WrongStateError(f"the test has started {len(self._workers)} workers")
        return self._workers[number - 1]

    def _crash(self, worker: Worker) -> Undo:
        return worker.crash()

    def _freeze(self, worker: Worker) -> Undo:
        return worker.freeze()

    def _fail(self, worker: Worker) -> Undo:
        return worker.fail()

    def _clock(self, worker: Worker, seconds: str) -> Undo:
        return worker.shift_clock(float(seconds))

    def _cut(self, worker: Worker, far_end: str, direction: str) -> Undo:
        far = ANY
        if far_end != BROKERS:
            far = self._address(int(far_end.partition("-")[2]))
        ways = {"to": [(worker.name, far)], "from": [(far, worker.name)]}
        return self._combined.cut_clients(*(ways.get(direction) or ways["to"] + ways["from"]))

    def _slow(self, worker: Worker, latency_ms: str) -> Undo:
        network = self._loop.network
        ways = [(worker.name, ANY), (ANY, worker.name)]
        for source, target in ways:
            network.set_latency(source, target, float(latency_ms))

        def undo() -> None:
            for source, target in ways:
                network.set_latency(source, target, None)

        return undo

    # -- on brokers -------------------------------------------------------------------------------

    def _pause(self, broker_id: int) -> Undo:
        self._kafka.pause(broker_id)
        process = self._kafka.nodes.node(broker_id).process
        assert process is not None
        return process.resume

    def _kill(self, broker_id: int) -> Undo:
        self._kafka.kill(broker_id)
        return lambda: self._spawn(self._start_if_dead(broker_id))

    def _stop(self, broker_id: int) -> Undo:
        node = self._kafka.nodes.running(broker_id)
        if node.on_stopped is not None:
            raise WrongStateError(f"broker {broker_id} is shutting down already")
        stopping = self._spawn(self._stop_if_running(broker_id))
        # It may wait for the controller as long as that is cut off.
        return lambda: stopping.add_done_callback(
            lambda _: self._spawn(self._start_if_dead(broker_id))
        )

    async def _stop_if_running(self, broker_id: int) -> None:
        with suppress(WrongStateError):  # another action of the same moment may have been first
            await self._kafka.stop(broker_id)

    async def _start_if_dead(self, broker_id: int) -> None:
        if self._kafka.nodes.node(broker_id).state is ProcessState.DEAD:
            await self._kafka.start(broker_id, wait=False)

    def _spawn(self, coroutine: Any) -> Any:
        self.in_force += 1
        task = self._loop.create_task(coroutine)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, _: object) -> None:
        self.in_force -= 1

    def _isolate(self, broker_id: int) -> Undo:
        return self._fault_all_links(broker_id, LinkFault(drop=True))

    def _lag(self, broker_id: int, delay_ms: str) -> Undo:
        return self._fault_all_links(broker_id, LinkFault(delay_ms=int(delay_ms)))

    def _fault_all_links(self, broker_id: int, fault: LinkFault) -> Undo:
        return self._combined.fault_links(self._combined.links_of(broker_id), fault)

    def _deaf(self, broker_id: int) -> Undo:
        return self._combined.cut_clients((ANY, self._address(broker_id)))

    def _mute(self, broker_id: int) -> Undo:
        return self._combined.cut_clients((self._address(broker_id), ANY))

    def _transfer(self, broker_id: int, number: str) -> None:
        topics = self._kafka.nodes.controller.image.topics
        partitions = [
            (name, partition)
            for name in sorted(topics)
            if not is_internal_topic(name)
            for partition in range(len(topics[name].partitions))
        ]
        if not partitions:
            raise WrongStateError("the test has made no topic yet")
        topic, partition = partitions[int(number) % len(partitions)]
        self._kafka.nodes.transfer_leadership(topic, partition, broker_id)

    def _move_groups(self, broker_id: int) -> None:
        self._move(GROUP_METADATA_TOPIC, broker_id)

    def _move_transactions(self, broker_id: int) -> None:
        self._move(TRANSACTION_STATE_TOPIC, broker_id)

    def _move(self, topic: str, broker_id: int) -> None:
        state = self._kafka.nodes.controller.image.topics.get(topic)
        if state is None:
            raise WrongStateError("nobody has asked for a coordinator yet")
        for partition in range(len(state.partitions)):
            self._kafka.nodes.transfer_leadership(topic, partition, broker_id)

    def _error(self, broker_id: int | None, value: str) -> Undo:
        api, _, error = value.partition("/")
        return self._inject(api=api, broker=broker_id, error=error)

    def _lose(self, broker_id: int | None, api: str) -> Undo:
        return self._inject(api=api, broker=broker_id, lose="response")

    def _delay(self, broker_id: int | None, value: str) -> Undo:
        api, _, delay_ms = value.partition("/")
        return self._inject(api=api, broker=broker_id, delay_ms=int(delay_ms))

    def _inject(self, **fault: Any) -> Undo:
        return self._kafka.inject(Fault(**fault, count=HITS)).remove

    # -- the network ------------------------------------------------------------------------------

    def _address(self, broker_id: int) -> str:
        host, port = self._kafka.address(broker_id)
        return f"{host}:{port}"
