import ast
import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from broker_sim.protocol import messages
from broker_sim.protocol.message import to_dict


def test_fields_have_the_defaults_of_kafka():
    request = messages.FetchRequest()
    assert request.max_bytes == 0x7FFFFFFF
    assert request.cluster_id is None
    assert request.replica_state == messages.FetchRequest.ReplicaState(-1, -1)
    assert messages.MetadataRequest().topics == []
    assert messages.ProduceRequest.PartitionProduceData().records is None


def test_arrays_and_structs_are_fresh_in_every_message():
    first, second = messages.FetchRequest(), messages.FetchRequest()
    first.topics.append(messages.FetchRequest.FetchTopic())
    first.replica_state.replica_id = 3
    assert second == messages.FetchRequest()


def test_null_can_be_given_where_the_default_is_an_empty_array():
    assert messages.MetadataRequest(topics=None).topics is None


def test_constructor_takes_fields_by_position_and_by_keyword():
    topic = messages.FetchRequest.ForgottenTopic("a", partitions=[1])
    assert (topic.topic, topic.topic_id, topic.partitions) == ("a", bytes(16), [1])
    with pytest.raises(TypeError, match="unexpected keyword"):
        messages.FetchRequest(timeout=5)


def test_unknown_attribute_cannot_be_set():
    with pytest.raises(AttributeError):
        messages.FetchRequest().timeout = 5


def test_class_attributes_are_those_of_the_schema():
    request = messages.ProduceRequest
    assert (request.API_KEY, request.MIN_VERSION, request.MAX_VERSION) == (0, 3, 13)
    assert request.FLEXIBLE_VERSIONS_MIN == 9
    assert request.SPEC.listeners == ("broker",)
    assert messages.SaslHandshakeRequest.FLEXIBLE_VERSIONS_MIN is None
    assert messages.InitProducerIdRequest.LATEST_VERSION_UNSTABLE
    assert messages.ResponseHeader.API_KEY is None


def test_equality_is_by_class_and_fields():
    topic = messages.MetadataRequest.MetadataRequestTopic
    assert topic(name="a") == topic(name="a")
    assert topic(name="a") != topic(name="b")
    assert topic() != messages.MetadataResponse.MetadataResponseTopic()
    assert messages.HeartbeatRequest() != 5
    with pytest.raises(TypeError):
        hash(topic())


def test_repr_shows_no_secret():
    scram = messages.AlterUserScramCredentialsRequest
    shown = repr(messages.SaslAuthenticateRequest(auth_bytes=b"\0billing\0pass")) + repr(
        scram(upsertions=[scram.ScramCredentialUpsertion("a", 1, 4096, b"salt", b"pass")])
    )
    assert "pass'" not in shown
    assert shown.count("=<hidden>") == 2


def test_repr_shows_only_fields_that_differ_from_their_defaults():
    partition = messages.ProduceRequest.PartitionProduceData(5, memoryview(bytes(1000)))
    topic = messages.ProduceRequest.TopicProduceData("a", partition_data=[partition])
    assert repr(messages.ProduceRequest(acks=-1, topic_data=[topic])) == (
        "ProduceRequest(acks=-1, topic_data=[ProduceRequest.TopicProduceData(name='a', "
        "partition_data=[ProduceRequest.PartitionProduceData(index=5, records=<1000 bytes>)])])"
    )
    partition.records = memoryview(b"abc")
    assert repr(partition).endswith("records=b'abc')")


def test_to_dict_returns_plain_python_values():
    partition = messages.ProduceRequest.PartitionProduceData(5, [memoryview(b"ab"), b"c"])
    topic = messages.ProduceRequest.TopicProduceData("a", partition_data=[partition])
    assert to_dict(messages.ProduceRequest(None, -1, 7, [topic])) == {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 7,
        "topic_data": [
            {"name": "a", "topic_id": bytes(16), "partition_data": [{"index": 5, "records": [b"ab", b"c"]}]}
        ],
    }


def test_messages_can_be_copied_and_pickled():
    request = messages.FetchRequest(topics=[messages.FetchRequest.FetchTopic("a")])
    assert copy.deepcopy(request) == request
    assert pickle.loads(pickle.dumps(request)) == request


def test_unknown_message_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        messages.NoSuchRequest  # noqa: B018 - the access is the claim


def test_class_of_a_message_is_made_once():
    assert messages.VoteRequest is messages.VoteRequest
    assert "VoteRequest" in dir(messages)


def test_importing_the_protocol_parses_no_schema():
    program = (
        "from broker_sim.protocol import codec, headers, messages, schema\n"
        "assert schema.load_message.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_stubs_have_every_class_and_field():
    stub = ast.parse(Path(messages.__file__).with_suffix(".pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    assert set(classes) == set(dir(messages))
    for name, node in classes.items():
        cls = getattr(messages, name)
        nested = {inner.name: inner for inner in node.body if isinstance(inner, ast.ClassDef)}
        assert set(nested) == set(cls.STRUCTS)
        assert stub_fields(node) == list(cls.__slots__)
        for struct_name, struct in cls.STRUCTS.items():
            assert stub_fields(nested[struct_name]) == list(struct.__slots__)


def stub_fields(node):
    """Return the fields of a class of the stub; each has a default, so that the constructor can leave it out."""
    fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    assert all(field.value is not None for field in fields)
    return [field.target.id for field in fields]
