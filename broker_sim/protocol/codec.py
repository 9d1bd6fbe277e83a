"""Read and write Kafka messages: `decode`, `encode`.

Decoders and encoders are compiled at the first use of a version of a message (one to three
milliseconds) and kept. Kafka: `ApiMessage.read` and `ApiMessage.write`. Functions here
may be called from any thread.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from broker_sim.protocol.decode_compiler import compile_decoder
from broker_sim.protocol.encode_compiler import compile_encoder
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import BytesLike, Message
from broker_sim.protocol.source import CompiledFunction

M = TypeVar("M", bound=Message)

_MALFORMED = (struct.error, LookupError, ValueError)
_UNFIT = (struct.error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class _CompiledFunctions(dict[tuple[type[Message], int], CompiledFunction]):
    """Functions by message class and version, compiled at their first use."""

    def __init__(self, compiler: Callable[[type[Message], int], CompiledFunction]) -> None:
        super().__init__()
        self._compiler = compiler

    def __missing__(self, key: tuple[type[Message], int]) -> CompiledFunction:
        cls, version = key
        if version not in cls.SPEC.versions:
            versions = f"{cls.MIN_VERSION} to {cls.MAX_VERSION}" if cls.SPEC.versions else "none"
            raise ProtocolError(f"{cls.__name__} has no version {version}, only {versions}")
        self[key] = compiled = self._compiler(cls, version)
        return compiled


_DECODERS = _CompiledFunctions(compile_decoder)
_LIMITED_DECODERS = _CompiledFunctions(partial(compile_decoder, limited=True))
_ENCODERS = _CompiledFunctions(compile_encoder)


def decode(cls: type[M], version: int, buffer: BytesLike, offset: int = 0, *, limited: bool = False) -> M:
    """Return the message in `buffer` from `offset` on.

    `limited` refuses too large arrays and too many tagged fields, as Kafka does from 4.4 on.

    Bytes after the message are ignored, as by Kafka: librdkafka sends some. Records and bytes are memoryview
    slices of `buffer`, not copies. Raises ProtocolError if the bytes are malformed or too short, or the
    version is unknown.
    """
    compiled = (_LIMITED_DECODERS if limited else _DECODERS)[cls, version]
    try:
        message: M = compiled.call(buffer, offset)
    except _MALFORMED as error:
        raise _located(error, cls, version, compiled) from error
    return message


def encode(message: Message, version: int) -> list[BytesLike]:
    """Return the bytes of `message` in pieces, none empty; large records are not copied.

    Raises ProtocolError if a value does not fit its field: null where the version forbids it, a
    number out of range, or a value other than the default in a field that the version does
    not have (unless Kafka ignores it there).
    """
    compiled = _ENCODERS[type(message), version]
    try:
        chunks: list[BytesLike] = compiled.call(message)
    except _UNFIT as error:
        raise _located(error, type(message), version, compiled) from error
    return chunks


def encoded_size(chunks: Sequence[BytesLike]) -> int:
    """Return the number of bytes in `chunks`."""
    return sum(map(len, chunks))


def _located(error: Exception, cls: type[Message], version: int, compiled: CompiledFunction) -> ProtocolError:
    path = compiled.path_of(error)
    where = f"{cls.__name__} v{version}" + (f", {path}" if path else "")
    reason = "the bytes end too early" if isinstance(error, IndexError) else error
    return ProtocolError(f"{where}: {reason}")
