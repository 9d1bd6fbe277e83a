"""The faults that are injected into one cluster, and which of them hit a request.

Kafka has no counterpart. The gate of `RequestDispatcher` asks for the faults that hit a request and
loses or delays the whole of it, or answers it with an error. Handlers ask for errors of single topics and partitions
where they make the answer (`context.faults.error_for`). A hit of a fault with an error is counted when the
error is told. Only clients are hit; for what brokers send to each other there are `Links`.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from broker_sim.handlers.faults.hook import Hook
from broker_sim.handlers.faults.request_faults import RequestFaults
from broker_sim.handlers.faults.targets import targets_of
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.handlers.faults.fault import Fault

NOTHING = TopicPartition("", -1)
"""Stands for a request that names no topic: only faults without a topic hit it."""


class InjectedFault:
    """A fault that was injected, whether it has ended or not; a `with` block ends it. Thread rule: any thread."""

    __slots__ = ("_injector", "fault", "hits", "id")

    def __init__(self, injector: FaultInjector, fault_id: int, fault: Fault) -> None:
        self._injector = injector
        self.id = fault_id
        self.fault = fault
        self.hits = 0
        """Number of requests the fault has hit."""

    @property
    def remaining(self) -> int | None:
        """Number of requests the fault can still hit, None for no limit; at 0 it has ended."""
        return None if self.fault.count is None else self.fault.count - self.hits

    def remove(self) -> None:
        """End the fault; does nothing if it has ended."""
        self._injector.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def to_json(self) -> dict[str, Any]:
        """Return the fault as `/status` shows it; `count` is what remains."""
        fault = self.fault
        return {
            "id": self.id,
            "api": fault.api.name,
            "broker": fault.broker,
            "topic": fault.topic,
            "partition": fault.partition,
            "error": None if fault.error is None else fault.error.name,
            "lose": None if fault.lose is None else fault.lose.value,
            "delay_ms": fault.delay_ms,
            "throttle_ms": fault.throttle_ms,
            "count": self.remaining,
            "hits": self.hits,
            "hook": fault.name if isinstance(fault, Hook) else None,
        }

    def __repr__(self) -> str:
        return f"<InjectedFault {self.id}: {self.fault}, {self.hits} hits>"


class FaultInjector:
    """The faults of one cluster, in the order in which they were injected.

    A partition (or topic, or request, whichever the API answers by) is hit by the first fault that
    names it. Thread rule: any thread; who only reads `injected` needs no lock, as it is replaced
    whole.
    """

    def __init__(self) -> None:
        self.injected: tuple[InjectedFault, ...] = ()
        """The faults that have not ended."""
        self._ids = count(1)
        self._lock = Lock()

    def inject(self, fault: Fault) -> InjectedFault:
        """Let the fault hit requests from now on; returns its handle."""
        with self._lock:
            injected = InjectedFault(self, next(self._ids), fault)
            self.injected = (*self.injected, injected)
        return injected

    def heal(self, fault_id: int | None = None) -> None:
        """End the fault of that id, or all of them. Raises LookupError if there is none of that id."""
        if fault_id is None:
            self.clear()
            return
        for injected in self.injected:
            if injected.id == fault_id:
                injected.remove()
                return
        raise LookupError(f"there is no fault {fault_id}")

    def clear(self) -> None:
        """End all faults."""
        with self._lock:
            self.injected = ()

    def discard(self, injected: InjectedFault) -> None:
        """End one fault; does nothing if it has ended."""
        with self._lock:
            self._discard(injected)

    def _discard(self, injected: InjectedFault) -> None:
        self.injected = tuple(other for other in self.injected if other is not injected)

    def _count(self, injected: InjectedFault) -> None:
        injected.hits += 1
        if injected.remaining == 0:
            self._discard(injected)

    def hit(self, request: Any, context: RequestContext) -> RequestFaults | None:
        """Return the faults that hit the request, and count the hit; None if there are none."""
        api, broker_id = context.api_key, context.broker.broker_id
        possible = [
            injected
            for injected in self.injected
            if injected.fault.api is api and injected.fault.broker in (None, broker_id)
        ]
        for injected in possible:
            if isinstance(injected.fault, Hook):
                faults = self._ask(injected, injected.fault, request, context)
                if faults is not None:
                    return faults
        possible = [one for one in possible if not isinstance(one.fault, Hook)]
        return self._hit_by_name(possible, request, context) if possible else None

    def _ask(self, injected: InjectedFault, hook: Hook, request: Any, context: RequestContext) -> RequestFaults | None:
        """Return what the hook decides; not under the lock, because it may end faults."""
        with self._lock:
            if injected not in self.injected:
                return None
            self._count(injected)
        hooked = hook.ask(request, context)
        fault = hooked.as_fault()
        if fault is None and hooked.response is None:
            return None
        if fault is not None and not fault.is_told_in(context.api_version):
            raise ValueError(f"{fault.api.api_name} {context.api_version} cannot tell {fault.error!r}")
        return RequestFaults([] if fault is None else [fault], context, lambda _: True, hooked.response)

    def _hit_by_name(
        self, possible: Sequence[InjectedFault], request: Any, context: RequestContext
    ) -> RequestFaults | None:
        """Return the faults that name what the request names."""
        with self._lock:
            possible = [one for one in possible if one in self.injected and one.fault.is_told_in(context.api_version)]
            hits: list[InjectedFault] = []
            for target in targets_of(request, context) or [NOTHING]:
                first = next((one for one in possible if one.fault.names(*target)), None)
                if first is not None and first not in hits:
                    hits.append(first)
            # Where the connection breaks, the others change nothing.
            hits = [one for one in hits if one.fault.lose][:1] or hits
            for injected in hits:
                if not injected.fault.error:
                    self._count(injected)
        if not hits:
            return None
        hits.sort(key=lambda injected: injected.id)
        return RequestFaults([injected.fault for injected in hits], context, partial(self._tell, hits))

    def _tell(self, hits: Sequence[InjectedFault], fault: Fault) -> bool:
        """Count the hit of a fault whose error is told; return False if it has ended."""
        with self._lock:
            injected = next(hit for hit in hits if hit.fault is fault)
            if injected not in self.injected:
                return False
            self._count(injected)
        return True
