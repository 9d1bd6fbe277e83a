"""Random messages for the tests of the codec."""

import random
import struct

import pytest

from broker_sim.protocol.message import Message, Struct
from broker_sim.protocol.schema import FIXED_FORMATS, FieldSpec, StructSpec

ALPHABET = "ab\0\x7fé漢😀"
INTEGERS = {"int8", "int16", "uint16", "int32", "uint32", "int64"}
LENGTHS = (0, 1, 1, 2, 3, 3, 5, 126, 127, 128)


class RandomMessages:
    """Makes messages whose values are extreme more often than chance would have it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def message(self, cls: type[Message], version: int) -> Message:
        """Return a message with random values in all fields that `version` carries."""
        return self._struct(cls, cls.SPEC.root, cls, version)

    def _struct(self, cls: type[Struct], spec: StructSpec, message: type[Message], version: int) -> Struct:
        made = cls()
        for field in spec.fields:
            tagged = field.is_tagged_in(version)
            if version in field.versions and not (tagged and self._rng.random() < 0.5):
                setattr(made, field.name, self._field(field, message, version))
        return made

    def _field(self, field: FieldSpec, message: type[Message], version: int) -> object:
        if version in field.nullable_versions and self._rng.random() < 0.2:
            return None
        if not field.is_array:
            return self._value(field, message, version)
        count = self._rng.choice((0, 1, 1, 2, 3))
        if field.type in FIXED_FORMATS:
            count = self._rng.choice(LENGTHS)
        return [self._value(field, message, version) for _ in range(count)]

    def _value(self, field: FieldSpec, message: type[Message], version: int) -> object:
        if field.struct:
            return self._struct(message.STRUCTS[field.struct.name], field.struct, message, version)
        return self._integer(field) if field.type in INTEGERS else self._other(field.type)

    def _other(self, kind: str) -> object:
        rng = self._rng
        values = {
            "string": lambda: "".join(rng.choices(ALPHABET, k=rng.choice(LENGTHS))),
            "bytes": lambda: rng.randbytes(rng.choice((*LENGTHS, 4095, 4096, 5000))),
            "uuid": lambda: rng.randbytes(16),
            "bool": lambda: rng.random() < 0.5,
            "float64": lambda: rng.choice((0.0, -1.5, 1e300, rng.random())),
        }
        values["records"] = values["bytes"]
        return values[kind]()

    def _integer(self, field: FieldSpec) -> int:
        code = FIXED_FORMATS[field.type]
        bits = 8 * struct.calcsize(f">{code}")
        low, high = (0, 1 << bits) if code.isupper() else (-(1 << bits - 1), 1 << bits - 1)
        return self._rng.choice((0, 1, low, high - 1, self._rng.randrange(low, high)))


@pytest.fixture(scope="session")
def random_message():
    """Return a function `(rng, message_class, version) -> message`."""
    return lambda rng, cls, version: RandomMessages(rng).message(cls, version)
