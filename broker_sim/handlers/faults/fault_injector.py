"""The faults injected into one cluster, and the choice of those that hit a request.

Kafka has no counterpart. The gate of `RequestDispatcher` looks up the faults that hit a request and
holds, loses or delays the whole request, or answers it with an error. Handlers look up errors of single topics
and partitions while they build the response (`context.faults.error_for`). A fault with an error counts a hit
when the error is returned. Only client requests are hit; `Links` has faults between brokers.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from broker_sim.handlers.faults.hook import Hook
from broker_sim.handlers.faults.request_faults import RequestFaults
from broker_sim.handlers.faults.targets import (
    GROUP_FIELDS,
    GROUP_KEY,
    TRANSACTION_FIELDS,
    TRANSACTION_KEY,
    named_in,
    targets_of,
)
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.handlers.faults.fault import Fault

NOTHING = TopicPartition("", -1)
"""Stands for a request without topics: only faults without a topic hit it."""


class InjectedFault:
    """Handle of an injected fault, active or ended; a `with` block ends it. Thread rule: any thread."""

    __slots__ = ("_injector", "fault", "hits", "id", "skipped", "waiting")

    def __init__(self, injector: FaultInjector, fault_id: int, fault: Fault) -> None:
        self._injector = injector
        self.id = fault_id
        self.fault = fault
        self.hits = 0
        """Number of requests the fault has hit."""
        self.waiting: deque[Callable[[], object]] = deque()
        """Functions that resume the held requests, in order of arrival."""
        self.skipped = 0
        """Number of requests that passed because of the fault's `skip`."""

    @property
    def held(self) -> int:
        """Number of requests that the fault holds now."""
        return len(self.waiting)

    def release(self, count: int | None = None) -> int:
        """Pass up to `count` held requests on to their brokers, in order of arrival (default: all).

        Returns the number of released requests.
        """
        return self._injector.release(self, count)

    @property
    def remaining(self) -> int | None:
        """Number of requests the fault can still hit, None for no limit; at 0 it has ended."""
        return None if self.fault.count is None else self.fault.count - self.hits

    def remove(self) -> None:
        """End the fault and release the requests that it holds; does nothing if it has ended."""
        self._injector.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def to_json(self) -> dict[str, Any]:
        """Return the fault as `/status` shows it; `count` is the number of remaining hits."""
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
            "hold": fault.hold,
            "held": self.held,
            "damage": None if fault.damage is None else fault.damage.value,
            "only_counts": fault.only_counts,
            "client_id": fault.client_id,
            "group": fault.group,
            "transactional_id": fault.transactional_id,
            "skip": fault.skip,
            "probability": fault.probability,
            "count": self.remaining,
            "hits": self.hits,
            "hook": fault.name if isinstance(fault, Hook) else None,
        }

    def __repr__(self) -> str:
        return f"<InjectedFault {self.id}: {self.fault}, {self.hits} hits>"


class FaultInjector:
    """The faults of one cluster, in the order in which they were injected.

    A partition (or topic, or request, depending on what the API answers by) is hit by the first fault that
    matches it. Thread rule: any thread; reading `injected` needs no lock, because it is only replaced
    as a whole.
    """

    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        """Decides which requests a fault with a probability hits."""
        self.injected: tuple[InjectedFault, ...] = ()
        """The faults that have not ended."""
        self._ids = count(1)
        self._lock = Lock()

    def inject(self, fault: Fault) -> InjectedFault:
        """Activate the fault, and return its handle."""
        with self._lock:
            injected = InjectedFault(self, next(self._ids), fault)
            self.injected = (*self.injected, injected)
        return injected

    def heal(self, fault_id: int | None = None) -> None:
        """End the fault with that id, or all faults. Raises LookupError if no active fault has the id."""
        if fault_id is None:
            self.clear()
            return
        for injected in self.injected:
            if injected.id == fault_id:
                injected.remove()
                return
        raise LookupError(f"unknown fault {fault_id}")

    def clear(self) -> None:
        """End all faults."""
        with self._lock:
            ended, self.injected = self.injected, ()
        for injected in ended:
            self.release(injected)

    def discard(self, injected: InjectedFault) -> None:
        """End one fault; does nothing if it has ended."""
        with self._lock:
            self._discard(injected)
        self.release(injected)

    def hold(self, injected: InjectedFault, resume: Callable[[], object]) -> None:
        """Hold a request: `resume()` is called on any thread when it is released, at once if the fault has ended."""
        with self._lock:
            if injected in self.injected:
                injected.waiting.append(resume)
                return
        resume()

    def release(self, injected: InjectedFault, count: int | None = None) -> int:
        """Release held requests of a fault; return their number."""
        with self._lock:
            waiting = injected.waiting
            released = [waiting.popleft() for _ in range(len(waiting) if count is None else min(count, len(waiting)))]
            if injected.remaining == 0 and not waiting:
                self._discard(injected)
        for resume in released:
            resume()
        return len(released)

    def _discard(self, injected: InjectedFault) -> None:
        self.injected = tuple(other for other in self.injected if other is not injected)

    def _count(self, injected: InjectedFault) -> None:
        injected.hits += 1
        # A fault that holds requests stays listed until they are released.
        if injected.remaining == 0 and not injected.fault.hold:
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
        """Return the hook's decision; called without the lock, because the hook may end faults."""
        with self._lock:
            if injected not in self.injected:
                return None
            self._count(injected)
        hooked = hook.ask(request, context)
        fault = hooked.as_fault()
        if fault is None and hooked.response is None:
            return None
        if fault is not None and not fault.is_supported_in(context.api_version):
            raise ValueError(f"{fault.api.api_name} {context.api_version} cannot return {fault.error!r}")
        return RequestFaults([] if fault is None else [fault], context, lambda _: True, hooked.response)

    def _hit_by_name(
        self, possible: Sequence[InjectedFault], request: Any, context: RequestContext
    ) -> RequestFaults | None:
        """Return the faults that match topics and partitions of the request."""
        targets = targets_of(request, context) or [NOTHING]
        with self._lock:
            possible = [one for one in possible if self._is_hit(one, targets, request, context)]
            for injected in possible:
                if injected.fault.only_counts:
                    self._count(injected)
            hits: list[InjectedFault] = []
            for target in targets:
                matching = (one for one in possible if not one.fault.only_counts and one.fault.names(*target))
                first = next(matching, None)
                if first is not None and first not in hits:
                    hits.append(first)
            # If the connection breaks, the other faults have no effect.
            hits = [one for one in hits if one.fault.lose][:1] or hits
            for injected in hits:
                if not (injected.fault.error or injected.fault.damage):
                    self._count(injected)
        if not hits:
            return None
        hits.sort(key=lambda injected: injected.id)
        faults = RequestFaults([injected.fault for injected in hits], context, partial(self._count_error, hits))
        holder = next((injected for injected in hits if injected.fault.hold), None)
        if holder is not None:
            faults.hold = partial(self.hold, holder)
        return faults

    def _is_hit(
        self, injected: InjectedFault, targets: Sequence[TopicPartition], request: Any, context: RequestContext
    ) -> bool:
        """Whether the fault matches the request, and neither `skip` nor `probability` spares it."""
        fault = injected.fault
        if injected not in self.injected or injected.remaining == 0:
            return False
        if not (fault.is_supported_in(context.api_version) and _is_about(fault, request, context)):
            return False
        if not any(fault.names(*target) for target in targets):
            return False
        if injected.skipped < fault.skip:
            injected.skipped += 1
            return False
        return fault.probability == 1 or self._random.random() < fault.probability

    def _count_error(self, hits: Sequence[InjectedFault], fault: Fault) -> bool:
        """Count the hit of a fault whose error is returned; return False if the fault has ended."""
        with self._lock:
            injected = next(hit for hit in hits if hit.fault is fault)
            if injected not in self.injected:
                return False
            self._count(injected)
        return True


def _is_about(fault: Fault, request: Any, context: RequestContext) -> bool:
    """Whether the request has the fault's client, group and transactional id."""
    if fault.client_id not in (None, context.client_id):
        return False
    if fault.group is not None and fault.group not in named_in(request, GROUP_FIELDS, GROUP_KEY):
        return False
    transactional_id = fault.transactional_id
    return transactional_id is None or transactional_id in named_in(request, TRANSACTION_FIELDS, TRANSACTION_KEY)
