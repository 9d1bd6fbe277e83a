"""The injected faults that hit one request; made by `FaultInjector.hit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import answer_version, error_answer
from broker_sim.handlers.error_table import Place, ResponseError, response_error
from broker_sim.handlers.faults.fault import Damage
from broker_sim.handlers.faults.targets import PARTITIONS, TOPICS
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.file_view import FileView
from broker_sim.protocol.message import error_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.handlers.faults.fault import Fault, Loss
    from broker_sim.protocol import messages

LENGTH_START: Final = 8
RECORDS_START: Final = 12
"""Bytes of a batch before those that its length field counts."""
_BY_HANDLERS: Final = frozenset({*PARTITIONS, *TOPICS, ApiKey.DESCRIBE_LOG_DIRS})
"""APIs whose handlers return errors of single things themselves, and serve the rest of the request."""


def damaged(records: bytes, damage: Damage) -> bytes:
    """Return the batches with the first one damaged."""
    end = RECORDS_START + int.from_bytes(records[LENGTH_START:RECORDS_START], "big")
    if damage is Damage.CUT:
        return records[: min(end, len(records)) // 2]
    last = min(end, len(records)) - 1
    return records[:last] + bytes([records[last] ^ 1]) + records[last + 1 :]


def whole_bytes(records: Any) -> bytes:
    """Return the records of a response as bytes; they may be in parts or in a file."""
    if isinstance(records, FileView):
        return records.read()
    return bytes(records) if isinstance(records, bytes | bytearray | memoryview) else b"".join(records)


class FaultAnswer(NamedTuple):
    """The response to a request instead of its handler's."""

    message: Any
    """The response; None for a request without a response, whose connection is closed instead."""
    api_version: int
    """The version in which the response is encoded."""


class RequestFaults:
    """At least one fault, in the order in which they were injected, or an answer.

    With `answer` the request gets that response, after the longest delay of the faults. `on_error` is called with a
    fault before its error is first returned for the request; it returns False for a fault that has ended.
    """

    __slots__ = ("_answer", "_context", "_faults", "_is_returned", "_on_error", "hold")

    def __init__(
        self, faults: Sequence[Fault], context: RequestContext, on_error: Callable[[Fault], bool], answer: Any = None
    ) -> None:
        self._faults = faults
        self._context = context
        self._on_error = on_error
        self._answer = answer
        self._is_returned: dict[int, bool] = {}
        """Whether a fault's error was returned, by the fault's index in the list."""
        self.hold: Callable[[Callable[[], object]], object] | None = None
        """Calls a function when the request is released; None if the request is not held."""

    @property
    def loss(self) -> Loss | None:
        """The message that is lost when the connection breaks, None if it does not break."""
        return self._faults[0].lose if self._faults else None

    @property
    def delay_ms(self) -> int:
        """Longest delay of the faults in ms; faults whose error was not returned delay nothing."""
        returned = self._is_returned
        in_effect = (fault for number, fault in enumerate(self._faults) if not fault.error or returned.get(number))
        return max((fault.delay_ms for fault in in_effect), default=0)

    @property
    def throttle_ms(self) -> int:
        """Longest throttle time of the faults in ms."""
        return max((fault.throttle_ms for fault in self._faults), default=0)

    def error_for(self, topic: str, partition: int = -1, *, acknowledges: bool = False) -> ErrorCode:
        """Return the injected error of the partition, or of the topic if `partition` is -1; NONE if there is none.

        With `acknowledges`, return the error of the acknowledgements in a share fetch.
        """
        for number, fault in enumerate(self._faults):
            if fault.names(topic, partition):
                error = self._find(fault)
                if error is None or error.place is Place.WHOLE:
                    return ErrorCode.NONE
                if error.place is Place.ACKNOWLEDGEMENT and not acknowledges:
                    return ErrorCode.NONE
                return error.error_code if self._count_error(number) else ErrorCode.NONE
        return ErrorCode.NONE

    def answer(self, request: Any) -> FaultAnswer | None:
        """Return the response that replaces the handler's, None if the handler answers."""
        context = self._context
        if self._answer is not None:
            return FaultAnswer(self._answer, context.api_version)
        for number, fault in enumerate(self._faults):
            error = self._find(fault)
            if error is None or (error.place is not Place.WHOLE and context.api_key in _BY_HANDLERS):
                continue
            assert fault.error is not None
            message = error_answer(context.api_key, request, context.api_version, fault.error)
            # The response to an empty request may have no place for the error: its handler answers.
            has_error = message is None or error.error_code in error_codes(message)
            if has_error and self._count_error(number):
                version = answer_version(context.api_key, context.api_version, fault.error)
                return FaultAnswer(message, version)
        return None

    def damage(self, response: Any) -> None:
        """Damage the first batch of each partition of a fetch response that a damage fault matches."""
        if self._context.api_key is not ApiKey.FETCH or not any(fault.damage for fault in self._faults):
            return
        names = self._context.broker.image.topic_names
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for partition in topic.partitions:
                self._damage_partition(name, partition)

    def _damage_partition(self, topic: str, partition: messages.FetchResponse.PartitionData) -> None:
        for number, fault in enumerate(self._faults):
            if fault.names(topic, partition.partition_index):
                if fault.damage and partition.records and self._count_error(number):
                    partition.records = damaged(whole_bytes(partition.records), fault.damage)
                return

    def _find(self, fault: Fault) -> ResponseError | None:
        context = self._context
        return response_error(context.api_key, context.api_version, fault.error) if fault.error else None

    def _count_error(self, number: int) -> bool:
        """Count the fault's error as returned; return False if hits on other requests have ended the fault."""
        if number not in self._is_returned:
            self._is_returned[number] = self._on_error(self._faults[number])
        return self._is_returned[number]
