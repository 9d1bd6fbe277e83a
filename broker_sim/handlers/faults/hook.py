"""A fault decided by a user's function, request by request; Kafka has no counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from broker_sim.handlers.faults.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.context import RequestContext
    from broker_sim.handlers.faults.fault import Loss
    from broker_sim.protocol.api_keys import ApiKey


class HookedRequest:
    """A request that has arrived and is not handled yet, with methods that decide its fate.

    It is handled as usual unless one of the methods is called; `delay` can be combined with `fail` and `answer`.
    """

    __slots__ = (
        "api", "api_version", "broker", "client_id", "delay_ms", "error", "loss", "message", "response",
    )  # fmt: skip

    def __init__(self, message: Any, context: RequestContext) -> None:
        self.message = message
        """The request as decoded, with the fields of Kafka's definitions in snake_case."""
        self.api = context.api_key
        self.api_version = context.api_version
        self.client_id = context.client_id
        self.broker = context.broker.broker_id
        self.error: str | ErrorCode | None = None
        self.loss: Literal["request", "response"] | Loss | None = None
        self.delay_ms = 0
        self.response: Any = None

    def fail(self, error: str | ErrorCode) -> None:
        """Answer everything in the request with this error, without handling it."""
        self.error = error

    def delay(self, delay_ms: int) -> None:
        """Delay the response; the request is handled at once."""
        self.delay_ms = delay_ms

    def lose(self, lose: Literal["request", "response"] | Loss) -> None:
        """Break the connection, before the broker handles the request or when it would respond."""
        self.loss = lose

    def answer(self, response: Any) -> None:
        """Answer with this message, of the API's response class, without handling the request."""
        self.response = response

    def as_fault(self) -> Fault | None:
        """Return the fault that was chosen, None for a request that passes."""
        if not (self.error or self.loss or self.delay_ms):
            return None
        return Fault(api=self.api, error=self.error, lose=self.loss, delay_ms=self.delay_ms)


class Hook(Fault):
    """Calls `function(request)` for each request of an API, of one broker or of all.

    `count` is the maximum number of calls. The function runs on the cluster's event loop: it must not
    block, and must not call a `Cluster`. An exception that it raises closes the connection; it is logged
    in real time and raised in virtual time.
    """

    __slots__ = ("function",)
    function: Callable[[HookedRequest], object]

    def __init__(
        self,
        api: str | ApiKey,
        function: Callable[[HookedRequest], object],
        *,
        broker: int | None = None,
        count: int | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"a hook calls a function, not {function!r}")
        # A fault must have an effect; this delay only satisfies the check.
        super().__init__(api=api, broker=broker, count=count, delay_ms=1)
        object.__setattr__(self, "delay_ms", 0)
        object.__setattr__(self, "function", function)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    def ask(self, request: Any, context: RequestContext) -> HookedRequest:
        """Call the function for a request, and return the request with its decision."""
        hooked = HookedRequest(request, context)
        self.function(hooked)
        return hooked

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Hook({self.api.api_name!r}, {self.name})"
