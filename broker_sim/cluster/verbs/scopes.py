"""Verbs whose effect lasts as long as a `with` block; Kafka has no counterpart."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from broker_sim.cluster.verbs.brokers import BrokerVerbs
from broker_sim.cluster.verbs.requests import RequestVerbs
from broker_sim.cluster.verbs.status import StatusVerbs
from broker_sim.control.verb import AsyncFace
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.faults import Damage, InjectedFault, Loss
    from broker_sim.protocol.api_keys import ApiKey

T = TypeVar("T")


class Scope(Generic[T]):
    """An effect that lasts as long as a `with` or `async with` block, also if the block raises.

    `leave_at_once` ends a plain `with` block if `leave` returns an awaitable.
    """

    def __init__(
        self, enter: Callable[[], T], leave: Callable[[T], object], leave_at_once: Callable[[T], object] | None = None
    ) -> None:
        self._enter = enter
        self._leave = leave
        self._leave_at_once = leave_at_once or leave
        self._entered: list[T] = []

    def __enter__(self) -> T:
        self._entered.append(self._enter())
        return self._entered[-1]

    def __exit__(self, *_: object) -> None:
        self._leave_at_once(self._entered.pop())

    async def __aenter__(self) -> T:
        self._entered.append(self._enter())
        return self._entered[-1]

    async def __aexit__(self, *_: object) -> None:
        result: Any = self._leave(self._entered.pop())
        if inspect.isawaitable(result):
            await result


class ScopeVerbs(StatusVerbs, RequestVerbs, BrokerVerbs):
    """Verbs that undo themselves at the end of a block."""

    def paused(self, broker_id: int) -> Scope[None]:
        """Pause a broker for a `with` block; it is resumed at the end if it is still paused."""

        def leave(_: None) -> None:
            if self.broker(broker_id).state == ProcessState.PAUSED.value:
                self.resume(broker_id)

        return Scope(lambda: self.pause(broker_id), leave)

    def killed(self, broker_id: int, *, end_session: bool = False) -> Scope[None]:
        """Kill a broker for a `with` block; it is started at the end if it is still dead.

        `end_session` as for `start`. The block ends when clients can connect; on an AsyncCluster only with
        `async with`, because a plain `with` does not wait.
        """

        def leave(_: None) -> object:
            if self.broker(broker_id).state != ProcessState.DEAD.value:
                return None
            return type(self).start(self, broker_id, end_session=end_session)

        def leave_at_once(_: None) -> object:
            if self.broker(broker_id).state == ProcessState.DEAD.value:
                self._start_dead(broker_id, end_session=end_session)
            return None

        at_once = leave_at_once if isinstance(self, AsyncFace) else leave
        return Scope(lambda: self.kill(broker_id), leave, at_once)

    def fault(
        self,
        *,
        api: str | ApiKey,
        broker: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        error: str | ErrorCode | None = None,
        lose: Literal["request", "response"] | Loss | None = None,
        delay_ms: int = 0,
        throttle_ms: int = 0,
        hold: bool = False,
        damage: Literal["crc", "cut"] | Damage | None = None,
        only_counts: bool = False,
        client_id: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        skip: int = 0,
        probability: float = 1,
        count: int | None = None,
    ) -> Scope[InjectedFault]:
        """Inject a fault for a `with` block, which gets its handle; the fields are those of `Fault`."""
        from broker_sim.handlers.faults import Fault as FaultClass  # noqa: PLC0415 - see `Verbs`

        fault = FaultClass(
            api=api, broker=broker, topic=topic, partition=partition,
            error=error, lose=lose, delay_ms=delay_ms, throttle_ms=throttle_ms,
            hold=hold, damage=damage, only_counts=only_counts,
            client_id=client_id, group=group, transactional_id=transactional_id,
            skip=skip, probability=probability, count=count,
        )  # fmt: skip
        return Scope(lambda: self.inject(fault), lambda injected: injected.remove())
