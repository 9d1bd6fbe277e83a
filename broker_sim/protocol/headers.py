"""Frames: the headers around a message, and the 4-byte size before them.

Mirrors Kafka's `RequestHeader`, `ResponseHeader` and `ApiMessageType`'s choice of header
versions. Request headers have version 2 if the message is flexible, otherwise 1; response
headers have 1 and 0 likewise. There are two exceptions: a client id is never a compact string,
and the response to ApiVersions always has header version 0, because the client does not know
the broker's versions yet (KIP-511). A null client id stays null here; Kafka makes it "".
"""

from struct import Struct, error
from typing import Any, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.protocol.api_keys import ApiKey, request_class, response_class
from broker_sim.protocol.codec import decode, encode, encoded_size
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import BytesLike, Chunk, Message
from broker_sim.protocol.primitives import skip_few_tagged_fields, skip_tagged_fields

_NEVER = 32768
_REQUEST = Struct(">hhih")
_REQUEST_PREFIX = Struct(">ihhih")
_RESPONSE_PREFIX = Struct(">ii")
_FLEXIBLE_RESPONSE_PREFIX = Struct(">iib")
_CORRELATION_ID = Struct(">i")
_ERROR_CODE = Struct(">h")


class RequestHeader(NamedTuple):
    """The header of every request."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str | None


class _Api(NamedTuple):
    key: ApiKey
    flexible_request_min: int
    flexible_response_header_min: int


class _Apis(dict[int, _Api]):
    """Header versions by API, loaded at the first use."""

    def __missing__(self, api_key: int) -> _Api:
        try:
            key = ApiKey(api_key)
        except ValueError:
            raise ProtocolError(f"unknown API key {api_key}") from None
        request_min = request_class(key).FLEXIBLE_VERSIONS_MIN
        response_min = response_class(key).FLEXIBLE_VERSIONS_MIN
        if key is ApiKey.API_VERSIONS:
            response_min = None
        self[api_key] = api = _Api(
            key, _NEVER if request_min is None else request_min, _NEVER if response_min is None else response_min
        )
        return api


_APIS = _Apis()


def decode_request_header(buffer: BytesLike, *, limited: bool = False) -> tuple[RequestHeader, int]:
    """Return the header of a frame (without its size) and the offset of the message.

    `limited` refuses too many tagged fields, as Kafka does from 4.4 on.
    Raises ProtocolError for an unknown API or malformed bytes. An unknown version is left to the caller.
    """
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(buffer)
        api = _APIS[api_key]
        offset = _REQUEST.size
        client_id = None
        if length >= 0:
            end = offset + length
            if end > len(buffer):
                raise ProtocolError(f"request header, client_id: {length} bytes announced")
            client_id = str(buffer[offset:end], "utf-8", "replace")
            offset = end
        if api_version >= api.flexible_request_min:
            skip = skip_few_tagged_fields if limited else skip_tagged_fields
            offset = skip(buffer, offset + 1, buffer[offset])
    except (error, IndexError) as cause:
        raise ProtocolError(f"request header: {cause}") from cause
    return RequestHeader(api.key, api_version, correlation_id, client_id), offset


def encode_request(header: RequestHeader, message: Message) -> list[BytesLike]:
    """Return a whole frame, beginning with its size, in the version of `header`."""
    chunks = encode(message, header.api_version)
    client_id = None if header.client_id is None else header.client_id.encode()
    suffix = client_id or b""
    if header.api_version >= _APIS[header.api_key].flexible_request_min:
        suffix += b"\0"
    size = _REQUEST.size + len(suffix) + encoded_size(chunks)
    try:
        prefix = _REQUEST_PREFIX.pack(
            size, header.api_key, header.api_version, header.correlation_id, -1 if client_id is None else len(client_id)
        )
    except error as cause:
        raise ProtocolError(f"{header}: {cause}") from cause
    return _with_prefix(prefix + suffix, chunks)


def encode_response(api_key: int, api_version: int, correlation_id: int, message: Message) -> list[Chunk]:
    """Return a whole frame, beginning with its size; records of a fetch may be parts of files."""
    chunks = encode(message, api_version)
    size = len(chunks[0]) if len(chunks) == 1 else encoded_size(chunks)
    if api_version >= _APIS[api_key].flexible_response_header_min:
        prefix = _FLEXIBLE_RESPONSE_PREFIX.pack(size + 5, correlation_id, 0)
    else:
        prefix = _RESPONSE_PREFIX.pack(size + 4, correlation_id)
    return _with_prefix(prefix, chunks)


def decode_response(api_key: int, api_version: int, buffer: BytesLike) -> tuple[int, Message]:
    """Return the correlation id and the message of a frame without its size.

    A broker that does not know the version of an ApiVersions request answers with the body
    of version 0 and UNSUPPORTED_VERSION; this is decoded for every `api_version`.
    """
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer)
        offset = _CORRELATION_ID.size
        if api_version >= _APIS[api_key].flexible_response_header_min:
            offset = skip_tagged_fields(buffer, offset + 1, buffer[offset])
        elif api_key == ApiKey.API_VERSIONS:
            (error_code,) = _ERROR_CODE.unpack_from(buffer, offset)
            if error_code == ErrorCode.UNSUPPORTED_VERSION:
                api_version = 0
    except (error, IndexError) as cause:
        raise ProtocolError(f"response header: {cause}") from cause
    return correlation_id, decode(response_class(api_key), api_version, buffer, offset)


def _with_prefix(prefix: bytes, chunks: list[Any]) -> list[Any]:
    if chunks:
        chunks[0] = prefix + chunks[0]
        return chunks
    return [prefix]
