"""The injected faults that hit one request; made by `FaultInjector.hit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import answer_version, error_answer
from broker_sim.handlers.error_table import Place, Told, find_told
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
"""Where the length of a batch stands, and where the bytes begin that it counts."""
_BY_HANDLERS: Final = frozenset({*PARTITIONS, *TOPICS, ApiKey.DESCRIBE_LOG_DIRS})
"""The APIs whose handlers tell the errors of single things, and serve the others."""


def damaged(records: bytes, damage: Damage) -> bytes:
    """Return batches of which the first one is damaged."""
    end = RECORDS_START + int.from_bytes(records[LENGTH_START:RECORDS_START], "big")
    if damage is Damage.CUT:
        return records[: min(end, len(records)) // 2]
    last = min(end, len(records)) - 1
    return records[:last] + bytes([records[last] ^ 1]) + records[last + 1 :]


def whole_bytes(records: Any) -> bytes:
    """Return the records of a response, which may be in parts or in a file."""
    if isinstance(records, FileView):
        return records.read()
    return bytes(records) if isinstance(records, bytes | bytearray | memoryview) else b"".join(records)


class FaultAnswer(NamedTuple):
    """The response to a request in place of its handler's."""

    message: Any
    """The response; None for a request that gets none, whose connection is closed instead."""
    api_version: int
    """The version that the response is written in."""


class RequestFaults:
    """At least one fault, in the order in which they were injected, or an answer.

    With `answer` the request is answered by that, after the longest delay of the faults. `on_told` is called with a
    fault the first time that the request is told its error; it returns False for a fault that has ended.
    """

    __slots__ = ("_answer", "_context", "_faults", "_on_told", "_told", "hold")

    def __init__(
        self, faults: Sequence[Fault], context: RequestContext, on_told: Callable[[Fault], bool], answer: Any = None
    ) -> None:
        self._faults = faults
        self._context = context
        self._on_told = on_told
        self._answer = answer
        self._told: dict[int, bool] = {}
        """Whether the error of a fault was told, by the fault's place in the list."""
        self.hold: Callable[[Callable[[], object]], object] | None = None
        """Calls a function when the request is released; None for a request that is not held."""

    @property
    def loss(self) -> Loss | None:
        """Whether the connection breaks before the handler, or in place of the response."""
        return self._faults[0].lose if self._faults else None

    @property
    def delay_ms(self) -> int:
        """Longest time in ms that the faults hold the response back; those whose error was not told hold nothing."""
        in_effect = (fault for number, fault in enumerate(self._faults) if not fault.error or self._told.get(number))
        return max((fault.delay_ms for fault in in_effect), default=0)

    @property
    def throttle_ms(self) -> int:
        """Longest time in ms that the faults mute the client after the response."""
        return max((fault.throttle_ms for fault in self._faults), default=0)

    def error_for(self, topic: str, partition: int = -1, *, acknowledges: bool = False) -> ErrorCode:
        """Return the error that answers this partition, or this topic; NONE without one.

        `acknowledges` is for the records of the partition that a share fetch acknowledges.
        """
        for number, fault in enumerate(self._faults):
            if fault.names(topic, partition):
                told = self._find(fault)
                if told is None or told.place is Place.WHOLE:
                    return ErrorCode.NONE
                if told.place is Place.ACKNOWLEDGEMENT and not acknowledges:
                    return ErrorCode.NONE
                return told.error_code if self._tell(number) else ErrorCode.NONE
        return ErrorCode.NONE

    def answer(self, request: Any) -> FaultAnswer | None:
        """Return what answers the request in place of its handler, None if the handler answers."""
        context = self._context
        if self._answer is not None:
            return FaultAnswer(self._answer, context.api_version)
        for number, fault in enumerate(self._faults):
            told = self._find(fault)
            if told is None or (told.place is not Place.WHOLE and context.api_key in _BY_HANDLERS):
                continue
            assert fault.error is not None
            message = error_answer(context.api_key, request, context.api_version, fault.error)
            # A request that names nothing may have no place for the error: its handler answers.
            is_told = message is None or told.error_code in error_codes(message)
            if is_told and self._tell(number):
                version = answer_version(context.api_key, context.api_version, fault.error)
                return FaultAnswer(message, version)
        return None

    def damage(self, response: Any) -> None:
        """Damage the first batch of each partition of a fetch's response that a fault is to damage."""
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
                if fault.damage and partition.records and self._tell(number):
                    partition.records = damaged(whole_bytes(partition.records), fault.damage)
                return

    def _find(self, fault: Fault) -> Told | None:
        context = self._context
        return find_told(context.api_key, context.api_version, fault.error) if fault.error else None

    def _tell(self, number: int) -> bool:
        """Tell a fault's error; return False if the fault has ended by hits on other requests."""
        if number not in self._told:
            self._told[number] = self._on_told(self._faults[number])
        return self._told[number]
