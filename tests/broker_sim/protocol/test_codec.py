import tracemalloc

import pytest

from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode, encode, encoded_size
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import make_message_class
from broker_sim.protocol.schema import parse_message


def encoded(message, version):
    return b"".join(encode(message, version))


def produce(records):
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(7, records)
    return request(None, -1, 1500, [request.TopicProduceData("a", partition_data=[partition])])


def test_rigid_version_has_the_bytes_of_kafka():
    expected = "ffff ffff 000005dc 00000001 0001 61 00000001 00000007 00000003 787878"
    assert encoded(produce(b"xxx"), 3).hex() == expected.replace(" ", "")


def test_flexible_version_has_the_bytes_of_kafka():
    expected = "00 ffff 000005dc 02 02 61 02 00000007 04 787878 00 00 00"
    assert encoded(produce(b"xxx"), 9).hex() == expected.replace(" ", "")


def test_version_with_topic_ids_has_the_bytes_of_kafka():
    request = produce(b"")
    request.topic_data[0].topic_id = bytes(range(16))
    request.topic_data[0].name = "ignored"
    expected = "00 ffff 000005dc 02 000102030405060708090a0b0c0d0e0f 02 00000007 01 00 00 00"
    assert encoded(request, 13).hex() == expected.replace(" ", "")


def test_records_are_decoded_as_a_slice_of_the_buffer():
    frame = bytearray(encoded(produce(b"xxx"), 9))
    records = decode(messages.ProduceRequest, 9, frame).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"xxx")] = ord("y")
    assert records == b"yxx"


@pytest.mark.parametrize("buffer_type", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_decoded_from_any_offset(buffer_type):
    buffer = buffer_type(b"header" + encoded(produce(b"xxx"), 9))
    assert decode(messages.ProduceRequest, 9, buffer, 6) == produce(b"xxx")


def test_large_records_are_encoded_by_reference():
    large = memoryview(bytes(100_000))
    chunks = encode(produce([large, b"small", large]), 9)
    assert [len(chunk) for chunk in chunks] == [18, 100_000, 5, 100_000, 3]
    assert chunks[1] is large
    assert encoded_size(chunks) == len(b"".join(chunks))
    assert decode(messages.ProduceRequest, 9, b"".join(chunks)) == produce(bytes(100_000) + b"small" + bytes(100_000))


def test_unknown_tagged_fields_are_skipped():
    plain = encoded(messages.HeartbeatRequest("g", 1, "m"), 4)
    assert plain.endswith(b"\0")
    unknown = plain[:-1] + b"\2" + b"\7\3abc" + b"\x80\x01\x00"
    assert decode(messages.HeartbeatRequest, 4, unknown) == messages.HeartbeatRequest("g", 1, "m")


def test_unknown_tagged_fields_beside_known_ones_are_skipped():
    request = messages.FetchRequest(cluster_id="c", replica_state=messages.FetchRequest.ReplicaState(3, 4))
    frame = encoded(request, 15)
    known = bytes.fromhex("02 00 02 02 63 01 0d 00000003 0000000000000004 00")
    assert frame.endswith(known)
    unknown = b"\3" + known[1:] + b"\7\3abc"
    assert decode(messages.FetchRequest, 15, frame.removesuffix(known) + unknown) == request


@pytest.mark.parametrize("size", ["03", "01", "09", "ffffffff0f"])
def test_size_of_a_known_tagged_field_is_not_looked_at(size):
    request = messages.FetchRequest(cluster_id="c")
    frame = encoded(request, 12)
    assert frame.endswith(b"\1\0\2\2c")
    assert decode(messages.FetchRequest, 12, frame[:-3] + bytes.fromhex(size) + b"\2c") == request


def test_tagged_field_of_another_version_is_refused():
    frame = encoded(messages.FetchRequest(), 12)
    assert frame.endswith(b"\0")
    with pytest.raises(ProtocolError, match="tag 1 is not valid in version 12"):
        decode(messages.FetchRequest, 12, frame[:-1] + b"\1\1\0")


def test_varint_of_a_negative_length_is_null():
    negative = bytes.fromhex("ffffffff0f")
    assert decode(messages.MetadataRequest, 12, negative + bytes(4)).topics is None
    with pytest.raises(ProtocolError, match="group_id: null is not allowed"):
        decode(messages.HeartbeatRequest, 4, negative + bytes(10))


def test_tagged_fields_with_default_values_are_not_written():
    with_defaults = messages.ApiVersionsResponse(finalized_features_epoch=-1)
    assert encoded(with_defaults, 3).hex() == "0000" + "01" + "00000000" + "00"
    with_epoch = messages.ApiVersionsResponse(finalized_features_epoch=2)
    assert encoded(with_epoch, 3).endswith(b"\1\1\x08\0\0\0\0\0\0\0\2")


def test_nullable_structs_have_a_presence_byte():
    request = messages.DescribeTopicPartitionsRequest
    absent, present = request(), request(cursor=request.Cursor("t", 5))
    assert encoded(absent, 0)[-2:] == b"\xff\0"
    assert encoded(present, 0)[-9:] == b"\1\2t\0\0\0\5\0\0"
    assert decode(request, 0, encoded(absent, 0)) == absent
    assert decode(request, 0, encoded(present, 0)) == present


def test_invalid_utf_8_is_replaced_as_java_does():
    frame = encoded(messages.HeartbeatRequest("xx", 1, "m"), 4).replace(b"xx", b"x\xff")
    assert decode(messages.HeartbeatRequest, 4, frame).group_id == "x\ufffd"


def test_null_in_a_field_that_is_not_nullable_is_neither_read_nor_written():
    with pytest.raises(ProtocolError, match="MetadataRequest v0, topics: null is not allowed"):
        decode(messages.MetadataRequest, 0, b"\xff\xff\xff\xff")
    with pytest.raises(ProtocolError, match="MetadataRequest v0, topics"):
        encode(messages.MetadataRequest(topics=None), 0)
    for version in (0, 4):
        with pytest.raises(ProtocolError, match=f"HeartbeatRequest v{version}, group_id"):
            encode(messages.HeartbeatRequest(group_id=None), version)


def test_value_that_the_version_does_not_have_is_refused_unless_ignorable():
    with pytest.raises(ProtocolError, match="group_instance_id: version 2 cannot carry it"):
        encode(messages.HeartbeatRequest("g", 1, "m", "instance"), 2)
    topic = messages.MetadataRequest.MetadataRequestTopic(topic_id=b"x" * 16, name="ignorable")
    assert encoded(messages.MetadataRequest(topics=[topic]), 0) == b"\0\0\0\1\0\x09ignorable"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"session_id": 1 << 31}, "replica_id to session_epoch"),
        ({"session_id": None}, "replica_id to session_epoch"),
        ({"rack_id": 5}, "rack_id"),
        ({"rack_id": "\ud800"}, "rack_id"),
        ({"rack_id": "x" * 32768}, "rack_id"),
        ({"topics": 5}, "topics"),
        ({"topics": [{}]}, r"topics\[0\]"),
        ({"replica_state": None}, "replica_state"),
    ],
)
def test_value_that_does_not_fit_its_field_is_an_error_with_the_path(change, path):
    with pytest.raises(ProtocolError, match=f"^FetchRequest v12, {path}"):
        encode(messages.FetchRequest(**change), 12)


def test_error_names_the_element_of_each_array():
    request = messages.FetchRequest
    partitions = [request.FetchPartition(i) for i in range(3)]
    message = request(topics=[request.FetchTopic("a"), request.FetchTopic("b", partitions=partitions)])
    partitions[2].fetch_offset = "1"
    with pytest.raises(ProtocolError, match=r"topics\[1\]\.partitions\[2\]\.partition to"):
        encode(message, 12)
    partitions[2].fetch_offset = 1
    frame = bytearray(encoded(message, 12))
    assert frame.endswith(b"\0\0\1\1\0")
    frame[-5] = 0x7F
    expected = r"topics\[1\]\.partitions\[2\]\.tagged fields: tag 0 is not valid in version 12"
    with pytest.raises(ProtocolError, match=expected):
        decode(request, 12, frame)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_uuid_of_the_wrong_size_is_refused(size):
    topic = messages.MetadataRequest.MetadataRequestTopic(topic_id=bytes(size), name=None)
    with pytest.raises(ProtocolError, match=r"topics\[0\]\.topic_id: a UUID has 16 bytes"):
        encode(messages.MetadataRequest(topics=[topic]), 12)


def test_uuids_are_bytes_for_every_type_of_buffer():
    request = messages.BrokerHeartbeatRequest(offline_log_dirs=[b"a" * 16, b"b" * 16])
    read = decode(messages.BrokerHeartbeatRequest, 1, memoryview(encoded(request, 1)))
    assert [type(uuid) for uuid in read.offline_log_dirs] == [bytes, bytes]
    assert read == request
    topic = messages.FetchRequest.FetchTopic(topic_id=b"c" * 16)
    frame = memoryview(encoded(messages.FetchRequest(topics=[topic]), 13))
    assert type(decode(messages.FetchRequest, 13, frame).topics[0].topic_id) is bytes


@pytest.mark.parametrize("records", ["text", 5, [b"a", "b"]])
def test_records_that_are_not_bytes_are_refused(records):
    with pytest.raises(ProtocolError, match="records"):
        encode(produce(records), 9)


def test_bytes_after_the_message_are_ignored():
    request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=True)
    for version in (1, 4, 12):
        frame = encoded(request, version)
        assert decode(messages.MetadataRequest, version, frame + b"abc") == request


@pytest.mark.parametrize("version", [-1, 2, 14, 99])
def test_unknown_versions_are_refused(version):
    with pytest.raises(ProtocolError, match=r"ProduceRequest has no version -?\d+, only 3 to 13"):
        decode(messages.ProduceRequest, version, b"")
    with pytest.raises(ProtocolError, match="no version"):
        encode(messages.ProduceRequest(), version)


def test_messages_of_removed_apis_have_no_version():
    with pytest.raises(ProtocolError, match="StopReplicaRequest has no version 0, only none"):
        encode(messages.StopReplicaRequest(), 0)


@pytest.mark.parametrize(
    ("cls", "version", "frame"),
    [
        (messages.MetadataRequest, 1, b"\x7f\xff\xff\xff" + bytes(6)),
        (messages.MetadataRequest, 9, b"\xff\xff\xff\xff\x07" + bytes(6)),
        (messages.OffsetFetchRequest, 1, b"\0\0" + b"\0\0\0\1\0\1a\x7f\xff\xff\xff" + bytes(8)),
        (messages.ProduceRequest, 3, b"\xff\xff\0\1" + bytes(4) + b"\0\0\0\1\0\1a\0\0\0\1"
            b"\0\0\0\0\x7f\xff\xff\xff"),
        (messages.HeartbeatRequest, 4, b"\xff\xff\x01g"),
        (messages.HeartbeatRequest, 0, b"\x7f\xffg"),
        (messages.ListGroupsRequest, 3, b"\xff\xff\xff\xff\x07\0\0"),
    ],
)  # fmt: skip
def test_too_large_lengths_and_counts_allocate_nothing(cls, version, frame):
    with pytest.raises(ProtocolError, match=f"{cls.__name__} v{version}"):
        decode(cls, version, frame)  # compiles the decoder, which does allocate
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(cls, version, frame)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("cls", "version", "frame", "reason"),
    [
        (messages.HeartbeatRequest, 0, b"\0\2g", "group_id: 2 bytes announced, 1 left"),
        (messages.HeartbeatRequest, 4, b"\3g", "group_id: 2 bytes announced, 1 left"),
        (messages.SaslAuthenticateRequest, 0, b"\0\0\0\2a", "auth_bytes: 2 bytes announced, 1 left"),
        (messages.MetadataRequest, 9, b"\3\2a\0", "topics: 2 elements announced, 3 bytes left"),
        (messages.MetadataRequest, 0, b"\0\0\0\2\0\0\0", "topics: 2 elements announced, 3 bytes left"),
        (messages.FetchRequest, 12, bytes(25) + b"\1\1\1\1\7\2\2", "tagged field: 2 bytes announced, 1 left"),
    ],
)  # fmt: skip
def test_error_of_a_too_large_length_names_its_field(cls, version, frame, reason):
    with pytest.raises(ProtocolError, match=reason):
        decode(cls, version, frame)


def made_of(*fields):
    """Return a message class, flexible from version 1 on, with `fields`."""
    definition = {
        "name": "Made",
        "type": "data",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [{"versions": "0+", **field} for field in fields],
    }
    return make_message_class(parse_message(definition), "made")


INNER = {"type": "Inner", "fields": [{"name": "A", "type": "int8", "versions": "0+"}]}
TAGGED = {"versions": "1+", "taggedVersions": "1+", "tag": 0, "ignorable": True}


def test_tagged_nullable_struct_has_a_presence_varint():
    cls = made_of({"name": "S", "nullableVersions": "1+", "default": "null", **INNER, **TAGGED})
    assert encoded(cls(), 1) == b"\0"
    present = cls(cls.Inner(5))
    assert encoded(present, 1) == b"\1\0\3\1\5\0"
    assert decode(cls, 1, encoded(present, 1)) == present
    assert decode(cls, 1, b"\1\0\4\x81\0\5\0") == present
    assert decode(cls, 1, b"\1\0\1\0") == cls(None)


def test_tagged_null_is_written_unless_it_is_the_default():
    cls = made_of(
        {"name": "S", "nullableVersions": "1+", **INNER, **TAGGED},
        {"name": "T", "type": "string", "nullableVersions": "1+", **TAGGED, "tag": 1},
        {"name": "U", "type": "[]int8", "nullableVersions": "1+", **TAGGED, "tag": 2},
    )
    assert encoded(cls(), 1) == b"\0"
    nulls = cls(None, None, None)
    assert encoded(nulls, 1) == b"\3\0\1\0\1\1\0\2\1\0"
    assert decode(cls, 1, encoded(nulls, 1)) == nulls
    assert encoded(nulls, 0) == b""


def test_types_that_no_kafka_message_uses_yet_can_be_encoded():
    cls = made_of(
        {"name": "Words", "type": "[]bytes"},
        {"name": "Flags", "type": "[]bool"},
        {"name": "Numbers", "type": "[]float64"},
        {"name": "Counter", "type": "uint32"},
        {"name": "Ids", "type": "[]uuid", "nullableVersions": "0+"},
        {"name": "Rigid", "type": "bytes", "flexibleVersions": "none"},
        {"name": "Data", "type": "bytes", "nullableVersions": "0+"},
    )
    message = cls([b"a", b""], [True, False], [0.5], 0xFFFFFFFF, None, b"rigid", None)
    expected = "03 02 61 01 03 01 00 02 3fe0000000000000 ffffffff 00 00000005 7269676964 00 00"
    assert encoded(message, 1).hex() == expected.replace(" ", "")
    for version in (0, 1):
        assert decode(cls, version, encoded(message, version)) == message


def test_message_without_fields_is_empty():
    cls = made_of()
    assert encode(cls(), 0) == []
    assert decode(cls, 0, b"") == cls()
    assert encoded(cls(), 1) == b"\0"
