import pytest

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, request_class, response_class
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)


@pytest.mark.parametrize(("version", "tail"), [(11, b""), (12, b"\0")])
def test_client_id_is_never_compact_even_in_a_flexible_request_header(version, tail):
    header = RequestHeader(ApiKey.FETCH, version, 77, "me")
    frame = b"".join(encode_request(header, messages.FetchRequest()))
    assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
    assert frame[4:].startswith(b"\0\1" + bytes([0, version]) + b"\0\0\0\x4d" + b"\0\2me" + tail + b"\xff")
    decoded, offset = decode_request_header(frame[4:])
    assert decoded == header
    assert decode(messages.FetchRequest, version, frame[4:], offset) == messages.FetchRequest()


def test_null_client_id_stays_null():
    header = RequestHeader(ApiKey.METADATA, 12, 1, None)
    frame = b"".join(encode_request(header, messages.MetadataRequest()))
    assert decode_request_header(memoryview(frame)[4:])[0] == header


def test_request_header_skips_tagged_fields():
    frame = b"\0\3\0\x0c\0\0\0\1\0\0" + b"\2\5\3abc\x80\1\0"
    assert decode_request_header(frame)[1] == len(frame)


@pytest.mark.parametrize(
    "frame",
    [b"", b"\0\0\0\1\0\0\0", b"\0\1\0\1\0\0\0\1\0\5abc", b"\x7f\xff\0\0\0\0\0\0\xff\xff", b"\0\3\0\x0c\0\0\0\1\0\0"],
)
def test_malformed_request_headers_are_protocol_errors(frame):
    with pytest.raises(ProtocolError):
        decode_request_header(frame)


def test_api_versions_responses_have_header_version_0():
    response = messages.ApiVersionsResponse(throttle_time_ms=5)
    for version in range(5):
        frame = b"".join(encode_response(ApiKey.API_VERSIONS, version, 9, response))
        assert frame[4:10] == b"\0\0\0\x09\0\0"


def test_response_headers_are_flexible_with_their_message():
    response = messages.HeartbeatResponse(error_code=1)
    assert b"".join(encode_response(ApiKey.HEARTBEAT, 0, 9, response))[4:] == b"\0\0\0\x09\0\1"
    flexible = b"".join(encode_response(ApiKey.HEARTBEAT, 4, 9, response))
    assert flexible[4:] == b"\0\0\0\x09\0" + b"\0\0\0\0\0\1\0"
    assert decode_response(ApiKey.HEARTBEAT, 4, flexible[4:]) == (9, response)


def test_unsupported_api_versions_request_is_answered_in_version_0():
    refused = messages.ApiVersionsResponse(error_code=35, api_keys=[messages.ApiVersionsResponse.ApiVersion(18, 0, 4)])
    frame = b"".join(encode_response(ApiKey.API_VERSIONS, 0, 1, refused))
    assert decode_response(ApiKey.API_VERSIONS, 4, frame[4:]) == (1, refused)


@pytest.mark.parametrize("api_key", list(ApiKey))
def test_api_keys_agree_with_the_schemas(api_key):
    assert api_key == request_class(api_key).API_KEY
    assert api_key == response_class(api_key).API_KEY


def test_every_api_of_the_schemas_has_its_key():
    requests = {name for name in dir(messages) if name.endswith("Request")}
    assert requests == {f"{api_key.api_name}Request" for api_key in ApiKey}
