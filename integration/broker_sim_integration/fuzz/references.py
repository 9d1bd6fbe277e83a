"""Values from the responses of a play, and requests made with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.message import to_dict
from broker_sim.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.protocol.message import Message, Struct
    from broker_sim.protocol.schema import FieldSpec, StructSpec

_REFERENCE = re.compile(r"<([a-z]+[0-9]*)(?:\.([a-z_]+))?([+-][0-9]+)?>")
_ROLES: Final = ("first", "second", "third")
_TOLD: Final = (
    "member_id",
    "generation_id",
    "member_epoch",
    "producer_id",
    "producer_epoch",
    "session_id",
    "endpoint_information_epoch",
)
"""Fields of responses that later requests of the same client may use."""
_TASKS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")
"""Task fields in assignments and reports of streams group members; None means unchanged."""
FINAL_EPOCH: Final = -1
"""The epoch that ends a session; see `share_session_epoch` in `References.learn_share`."""
_UNKNOWN: Final = {"generation_id": -1, "producer_id": -1}
UNKNOWN_TOPIC_ID: Final = bytes(range(16))
HEX: Final = "hex:"
TIMESTAMP_MS: Final = 1_700_000_000_000


class References:
    """The names of one play and the values that its clients have received."""

    def __init__(self, prefix: str, broker: Callable[[str], int]) -> None:
        """Names get the `prefix`; `broker` returns a broker's id by its role."""
        self.prefix = prefix
        self.topic_ids: dict[str, bytes] = {}
        self._broker = broker
        self._told: dict[tuple[str, str], Any] = {}

    def name(self, short: str) -> str:
        """Return a name with the play's prefix."""
        return f"{self.prefix}.{short}"

    def learn(self, client: str, answer: Message) -> None:
        """Store the values of a client's response."""
        for name in _TOLD:
            value = getattr(answer, name, None)
            is_refused = name == "member_epoch" and bool(getattr(answer, "error_code", 0))
            if value not in (None, "", -1) and not is_refused:
                self._told[client, name] = value
        for name in _TASKS:
            told = getattr(answer, name, None)
            if told is not None:
                self._told[client, name] = list(map(to_dict, told))
        for topic in getattr(answer, "topics", None) or ():
            topic_id = bytes(getattr(topic, "topic_id", NO_TOPIC_ID))
            if topic_id != NO_TOPIC_ID and getattr(topic, "name", None):
                self.topic_ids[topic.name] = topic_id

    def learn_share(self, client: str, request: Message, answer: Message) -> None:
        """Store the next epoch of a client's share session, and its last acquired records."""
        epoch = getattr(request, "share_session_epoch", None)
        if epoch is None or getattr(answer, "error_code", None):
            return
        self._told[client, "share_session_epoch"] = 0 if epoch == FINAL_EPOCH else epoch + 1
        acquired = [
            one
            for topic in getattr(answer, "responses", ())
            for partition in topic.partitions
            for one in getattr(partition, "acquired_records", ())
        ]
        if acquired:
            self._told[client, "acquired_first"] = acquired[0].first_offset
            self._told[client, "acquired_last"] = acquired[0].last_offset

    def message(self, message_class: type[Message], body: Mapping[str, Any]) -> Message:
        """Return the request with this body."""
        message = message_class()
        self._fill(message, message_class, message_class.SPEC.root, body)
        return message

    def _fill(self, target: Struct, owner: type[Message], spec: StructSpec, body: Mapping[str, Any]) -> None:
        fields = {one.name: one for one in spec.fields}
        for name, value in body.items():
            field = fields[name]
            items = self.resolve(value) if field.is_array else None
            if items is not None:
                setattr(target, name, [self._value(owner, field, item) for item in items])
            else:
                setattr(target, name, self._value(owner, field, value))

    def _value(self, owner: type[Message], field: FieldSpec, value: Any) -> Any:
        if field.struct is not None and value is not None:
            struct = owner.STRUCTS[field.struct.name]()
            self._fill(struct, owner, field.struct, value)
            return struct
        if field.type == "records" and value is not None:
            return self._records(value)
        resolved = self.resolve(value)
        if field.type == "bytes" and isinstance(resolved, str):
            return _bytes(resolved)
        return resolved

    def resolve(self, value: Any) -> Any:
        """Return a value with its references replaced."""
        if not isinstance(value, str):
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return self._resolved(whole)
        return _REFERENCE.sub(lambda match: str(self._resolved(match)), value)

    def _resolved(self, match: re.Match[str]) -> Any:
        base, attribute, delta = match.groups()
        if base in _ROLES:
            return self._broker(base)
        if attribute is None:
            return self.name(base)
        if attribute == "id":
            return self.topic_ids.get(self.name(base), UNKNOWN_TOPIC_ID)
        if attribute in _TASKS:
            return self._told.get((base, attribute), [])
        default = _UNKNOWN.get(attribute, "" if attribute == "member_id" else 0)
        value = self._told.get((base, attribute), default)
        return value if delta is None else value + int(delta)

    def _records(self, batches: Any) -> bytes:
        """Return the batches as bytes; a text is bytes in hexadecimal digits."""
        if isinstance(batches, str):
            return bytes.fromhex(batches)
        return b"".join(self._batch(**batch) for batch in batches)

    def _batch(
        self,
        values: list[str | None],
        *,
        keys: list[str | None] | None = None,
        timestamps: list[int] | None = None,
        codec: str = "none",
        damage: int | None = None,
        **header: Any,
    ) -> bytes:
        """Return one batch; timestamps are relative to a fixed one, `damage` is the index of a changed byte."""
        records = [
            Record(
                value=None if value is None else value.encode(),
                key=_encoded(keys[index % len(keys)] if keys else None),
                timestamp=TIMESTAMP_MS + (timestamps[index % len(timestamps)] if timestamps else 0),
            )
            for index, value in enumerate(values)
        ]
        resolved = {name: self.resolve(value) for name, value in header.items()}
        batch = bytearray(build_batch(records, codec=CompressionCodec[codec.upper()], **resolved))
        if damage is not None:
            batch[damage % len(batch)] ^= 0xFF
        return bytes(batch)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[len(HEX) :]) if text.startswith(HEX) else text.encode()


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
