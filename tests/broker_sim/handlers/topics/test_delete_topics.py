import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.handlers.topics.delete_topics import handle_delete_topics
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol.messages import DeleteTopicsRequest

State = DeleteTopicsRequest.DeleteTopicState
BY_NAME_VERSIONS = range(1, 6)


@pytest.fixture
def delete(broker):
    def ask(*topics, version=6, timeout_ms=1_000, at=broker):
        if version >= 6:
            request = DeleteTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)
        else:
            request = DeleteTopicsRequest(topic_names=list(topics), timeout_ms=timeout_ms)
        return at.ask(handle_delete_topics, request, version).responses

    return ask


@pytest.mark.parametrize("version", BY_NAME_VERSIONS)
def test_topic_is_gone_from_the_metadata_when_the_response_comes(broker, delete, version):
    broker.create("t", [1])
    (result,) = delete("t", version=version)
    assert (result.name, result.error_code) == ("t", ErrorCode.NONE)
    assert not broker.image.topics


def test_topic_is_deleted_by_its_name_or_by_its_id(broker, delete):
    id_a, id_b = broker.create("a", [1]), broker.create("b", [1])
    results = delete(State("a", NO_TOPIC_ID), State(None, id_b))
    assert [(r.name, r.topic_id, r.error_code) for r in results] == [
        ("a", id_a, ErrorCode.NONE),
        ("b", id_b, ErrorCode.NONE),
    ]
    assert not broker.image.topics


@pytest.mark.parametrize("version", BY_NAME_VERSIONS)
def test_unknown_name_fails_alone(broker, delete, version):
    broker.create("t", [1])
    results = delete("t", "u", version=version)
    assert {r.name: r.error_code for r in results} == {"t": ErrorCode.NONE, "u": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    message = {r.name: r.error_message for r in results}["u"]
    assert bool(message) == (version >= 5)


def test_unknown_id_is_answered_by_the_id(delete):
    (result,) = delete(State(None, b"x" * 16))
    assert (result.name, result.topic_id) == (None, b"x" * 16)
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_name_and_id_together_are_refused_and_neither_alone_is(broker, delete):
    topic_id = broker.create("t", [1])
    results = delete(State("t", topic_id), State(None, NO_TOPIC_ID), State(None, NO_TOPIC_ID))
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in results] == [
        ("t", topic_id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."),
        *[(None, NO_TOPIC_ID, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")] * 2,
    ]
    assert set(broker.image.topics) == {"t"}


def test_duplicate_name_or_id_is_refused(broker, delete):
    topic_id = broker.create("t", [1])
    broker.create("u", [1])
    results = delete(State("u", NO_TOPIC_ID), State("u", NO_TOPIC_ID), State(None, topic_id), State(None, topic_id))
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in results] == [
        ("u", NO_TOPIC_ID, ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id."),
    ]
    assert set(broker.image.topics) == {"t", "u"}


@pytest.mark.parametrize("version", range(1, 7))
def test_disabled_deletion_has_its_own_error_code_from_version_3(make_broker, delete, version):
    at = make_broker({"delete.topic.enable": "false"})
    at.create("t", [1])
    (result,) = delete("t" if version < 6 else State("t", NO_TOPIC_ID), version=version, at=at)
    disabled = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
    assert (result.name, result.error_code) == ("t", disabled)
    assert set(at.image.topics) == {"t"}


@pytest.mark.parametrize("version", range(1, 7))
def test_timeout_of_zero_deletes_nothing(broker, delete, version):
    broker.create("t", [1])
    asked = "t" if version < 6 else State("t", NO_TOPIC_ID)
    (result,) = delete(asked, version=version, timeout_ms=0)
    assert (result.name, result.error_code) == ("t", ErrorCode.REQUEST_TIMED_OUT)
    assert set(broker.image.topics) == {"t"}


def test_topic_given_by_name_and_id_is_not_deleted_and_answered_once(broker, delete):
    topic_id = broker.create("t", [1])
    (result,) = delete(State("t", NO_TOPIC_ID), State(None, topic_id))
    assert (result.name, result.topic_id) == ("t", topic_id)
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == ("The provided topic name maps to an ID that was already supplied.")
    assert "t" in broker.image.topics


def test_injected_error_answers_its_topic_and_the_others_are_deleted(broker, delete):
    id_a, id_b = broker.create("a", [1]), broker.create("b", [1])
    broker.faults.inject(Fault(api="DeleteTopics", topic="a", error="TOPIC_AUTHORIZATION_FAILED"))
    results = delete(State(None, id_a), State(None, id_b))
    assert [(r.topic_id, r.error_code) for r in results] == [
        (id_a, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (id_b, ErrorCode.NONE),
    ]
    (result,) = delete("a", version=5)
    assert (result.name, result.error_code) == ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert set(broker.image.topics) == {"a"}


@pytest.mark.parametrize(
    ("allowed", "denied", "by_name", "by_id"),
    [
        ([], [], ("t", False), (None, False)),
        (["DESCRIBE"], [], ("t", False), ("t", False)),
        (["DELETE"], [], ("t", True), ("t", True)),
        # Who may delete a topic that it may not describe needs its id.
        (["DELETE"], ["DESCRIBE"], ("t", False), ("t", True)),
        (["ALL"], ["DELETE"], ("t", False), ("t", False)),
    ],
)
def test_name_of_an_id_is_returned_to_clients_with_describe(make_broker, delete, allowed, denied, by_name, by_id):
    rules = [(name, Permission.ALLOW) for name in allowed]
    rules += [(name, Permission.DENY) for name in denied]
    for is_by_id, (name, is_deleted) in ((False, by_name), (True, by_id)):
        broker = make_broker({"authorizer.class.name": ("org.apache.kafka.metadata.authorizer.StandardAuthorizer")})
        topic_id = broker.create("t", [1])
        broker.active.create_acls(
            [
                Acl(
                    ResourceType.TOPIC,
                    "t",
                    PatternType.LITERAL,
                    "User:ANONYMOUS",
                    "*",
                    AclOperation[operation],
                    permission,
                )
                for operation, permission in rules
            ]
        )
        asked = State(None, topic_id) if is_by_id else State("t", NO_TOPIC_ID)
        (result,) = delete(asked, at=broker)
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        expected = (name, ErrorCode.NONE if is_deleted else refused)
        assert (result.name, result.error_code) == expected
        assert ("t" in broker.image.topics) is not is_deleted
