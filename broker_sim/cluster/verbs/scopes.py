"""What is done to a cluster for the time of a `with` block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from broker_sim.cluster.scopes import Scope
from broker_sim.cluster.verbs.brokers import BrokerVerbs
from broker_sim.cluster.verbs.requests import RequestVerbs
from broker_sim.cluster.verbs.status import StatusVerbs
from broker_sim.control.verb import AsyncFace
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.faults import InjectedFault, Loss
    from broker_sim.protocol.api_keys import ApiKey


class ScopeVerbs(StatusVerbs, RequestVerbs, BrokerVerbs):
    """Verbs that undo themselves at the end of a block."""

    def paused(self, broker_id: int) -> Scope[None]:
        """Pause a broker for a `with` block; at its end it is resumed, unless it is not paused."""

        def leave(_: None) -> None:
            if self.broker(broker_id).state == ProcessState.PAUSED.value:
                self.resume(broker_id)

        return Scope(lambda: self.pause(broker_id), leave)

    def killed(self, broker_id: int, *, end_session: bool = False) -> Scope[None]:
        """Kill a broker for a `with` block; at its end it is started, unless it lives again.

        `end_session` as for `start`. The block ends when clients can connect. On an AsyncCluster that
        is so with `async with`; `with` starts the broker and does not wait.
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
        count: int | None = None,
    ) -> Scope[InjectedFault]:
        """Inject a fault for a `with` block, which gets its handle; the fields are those of `Fault`."""
        from broker_sim.handlers.faults import Fault as FaultClass  # noqa: PLC0415 - see `Verbs`

        fault = FaultClass(
            api=api, broker=broker, topic=topic, partition=partition,
            error=error, lose=lose, delay_ms=delay_ms, throttle_ms=throttle_ms,
            count=count,
        )  # fmt: skip
        return Scope(lambda: self.inject(fault), lambda injected: injected.remove())
