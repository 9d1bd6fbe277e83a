"""Faults that are injected into clients' requests: errors, delays, lost requests and answers.

Kafka has no counterpart. A fault stands before the handler of an API, so it hits whatever comes over
a socket; the brokers' own fetches and heartbeats do not pass here, see `Links` for those.

An error is answered in place of the handler's work: nothing is appended, nothing is read. Where an
API answers for partitions one by one, only those that the fault names get the error, and the handler
works on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults.injected_errors import (
    PARTITION_APIS,
    can_fail_whole,
    has_partitions,
    names_partition,
    split_off,
)
from broker_sim.protocol.api_keys import ApiKey, response_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import BrokerServices, Handler, RequestContext, Respond

__all__ = ["Fault", "FaultInjector", "Loss", "parse_api"]

INJECTED = "injected fault"


class Loss(Enum):
    """What a connection loses when it breaks."""

    REQUEST = "request"
    """It breaks before the broker has done anything."""
    RESPONSE = "response"
    """The broker does its work, and the client does not hear of it."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to which requests; raises ValueError for what makes no sense.

    ``broker_id``, ``topic`` and ``partition`` None stand for all, ``remaining`` None for ever.
    ``delay_ms`` holds back the answer, also one with the error.
    """

    api: ApiKey
    broker_id: int | None = None
    topic: str | None = None
    partition: int | None = None
    error_code: ErrorCode = ErrorCode.NONE
    lose: Loss | None = None
    delay_ms: int = 0
    remaining: int | None = None

    def __post_init__(self) -> None:
        if not (self.error_code or self.lose or self.delay_ms):
            raise ValueError("a fault needs an error, a loss or a delay_ms")
        if self.lose and (self.error_code or self.delay_ms):
            raise ValueError("what is lost can have neither an error nor a delay_ms")
        if self.delay_ms < 0:
            raise ValueError(f"delay_ms must be at least 0, not {self.delay_ms}")
        if self.remaining is not None and self.remaining < 1:
            raise ValueError(f"count must be at least 1, not {self.remaining}")
        if self.partition is not None and self.topic is None:
            raise ValueError("a partition needs its topic")
        if self.topic is not None and self.api not in PARTITION_APIS:
            known = ", ".join(api.name for api in PARTITION_APIS)
            raise ValueError(f"{self.api.name} cannot be told by topic; these can: {known}")

        if self.error_code and self.api not in PARTITION_APIS and not can_fail_whole(self.api):
            raise ValueError(f"{self.api.name} cannot be answered with one error; delay or lose it")

    def names(self, topic: str, partition: int) -> bool:
        """Whether it hits that partition."""
        return self.topic in {None, topic} and self.partition in {None, partition}

    def hits(self, broker: BrokerServices, request: Any, context: RequestContext) -> bool:
        """Whether it hits that request, or one of its partitions."""
        return (
            self.api == context.api_key
            and self.broker_id in {None, broker.broker_id}
            and (self.topic is None or names_partition(broker, self.api, request, self.names))
        )


class FaultInjector:
    """The faults of one cluster, in the order in which they came; false while there are none."""

    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self._ids = count(1)

    def __len__(self) -> int:
        return len(self._faults)

    def add(self, fault: Fault) -> int:
        """Inject from now on; returns the number to `remove` it by."""
        fault_id = next(self._ids)
        self._faults[fault_id] = fault
        return fault_id

    def remove(self, fault_id: int) -> None:
        """End a fault; raises KeyError when there is none of that number any more."""
        del self._faults[fault_id]

    def clear(self) -> None:
        """End all faults."""
        self._faults.clear()

    def faults(self) -> dict[int, Fault]:
        """Return the faults that are still to hit, by number."""
        return dict(self._faults)

    def intercept(self, handler: Handler, call_later: Callable[..., object]) -> Handler:
        """Return a handler that lets requests through the first fault that hits them."""

        def handle(request: Any, context: RequestContext, respond: Respond) -> None:
            fault = self._take(context.broker, request, context)
            if fault is None:
                handler(request, context, respond)
            else:
                _Hit(fault, handler, call_later).handle(request, context, respond)

        return handle

    def _take(self, broker: BrokerServices, request: Any, context: RequestContext) -> Fault | None:
        """Return the first fault that hits the request, counted down."""
        for fault_id, fault in self._faults.items():
            if fault.hits(broker, request, context):
                if fault.remaining is not None:
                    fault.remaining -= 1
                    if fault.remaining == 0:
                        del self._faults[fault_id]
                return fault
        return None


class _Hit:
    """One request that is hit by a fault."""

    def __init__(self, fault: Fault, handler: Handler, call_later: Callable[..., object]) -> None:
        self._fault = fault
        self._handler = handler
        self._call_later = call_later

    def handle(self, request: Any, context: RequestContext, respond: Respond) -> None:
        """Lose, delay or refuse the request."""
        fault = self._fault
        if fault.lose is Loss.REQUEST:
            context.connection.close(INJECTED)
            return
        if fault.lose is Loss.RESPONSE:
            respond = _losing(context)
        elif fault.delay_ms:
            respond = self._delaying(respond)
        if fault.error_code:
            self._refuse(request, context, respond)
        else:
            self._handler(request, context, respond)

    def _delaying(self, respond: Respond) -> Respond:
        def respond_later(message: Any) -> None:
            self._call_later(self._fault.delay_ms, respond, message)

        return respond_later

    def _refuse(self, request: Any, context: RequestContext, respond: Respond) -> None:
        fault = self._fault
        if fault.api is ApiKey.PRODUCE and request.acks == 0:
            # There is no answer that could tell of the error; Kafka closes the connection.
            context.connection.close(INJECTED)
            return
        if fault.api not in PARTITION_APIS:
            response: Any = response_class(fault.api)()
            response.error_code = fault.error_code
            respond(response)
            return
        add_refusals = split_off(context.broker, fault.api, request, fault.names, fault.error_code)

        def respond_with_refusals(message: Any) -> None:
            add_refusals(message)
            respond(message)

        if has_partitions(fault.api, request):
            self._handler(request, context, respond_with_refusals)
        else:
            respond_with_refusals(response_class(fault.api)())


def _losing(context: RequestContext) -> Respond:
    def lose(_: Any) -> None:
        context.connection.close(INJECTED)

    return lose


def parse_api(text: str) -> ApiKey:
    """Return the API of Kafka's name, such as ListOffsets or LIST_OFFSETS; raises ValueError."""
    wanted = text.replace("_", "").lower()
    for api in ApiKey:
        if api.name.replace("_", "").lower() == wanted:
            return api
    raise ValueError(f"there is no API {text!r}; there are, for example, Produce and ListOffsets")
