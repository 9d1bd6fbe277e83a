"""Claims about AlterUserScramCredentials and DescribeUserScramCredentials, with the answers of Kafka 4.3.1."""

import pytest

from broker_sim import VirtualCluster
from broker_sim.handlers.security.alter_user_scram_credentials import handle_alter_user_scram_credentials
from broker_sim.handlers.security.describe_user_scram_credentials import handle_describe_user_scram_credentials
from broker_sim.protocol import messages

ALTER, DESCRIBE = (messages.AlterUserScramCredentialsRequest, messages.DescribeUserScramCredentialsRequest)
SHA_256, SHA_512, UNKNOWN = 1, 2, 3
NONE, SERVER_ERROR, NO_MECHANISM, NOT_FOUND, TWICE, UNACCEPTABLE = 0, -1, 33, 91, 92, 93
NO_NAME = (UNACCEPTABLE, "Username must not be empty")
BAD_MECHANISM = (NO_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW, TOO_MANY = (UNACCEPTABLE, "Too few iterations"), (UNACCEPTABLE, "Too many iterations")
MISSING = (NOT_FOUND, "Attempt to delete a user credential that does not exist")
DUPLICATE = (TWICE, "A user credential cannot be altered twice in the same request")
OK = (NONE, None)


def put(user="u", mechanism=SHA_256, iterations=4096, salt=b"salt", salted_password=b"s" * 32):
    return ALTER.ScramCredentialUpsertion(user, mechanism, iterations, salt, salted_password)


def drop(user="u", mechanism=SHA_256):
    return ALTER.ScramCredentialDeletion(user, mechanism)


def alter(broker, *changes):
    """Return code and text by user, in the order of the answer."""
    request = ALTER(
        [each for each in changes if isinstance(each, ALTER.ScramCredentialDeletion)],
        [each for each in changes if isinstance(each, ALTER.ScramCredentialUpsertion)],
    )
    response = broker.ask(handle_alter_user_scram_credentials, request, 0)
    users = [result.user for result in response.results]
    assert len(set(users)) == len(users)
    return {result.user: (result.error_code, result.error_message) for result in response.results}


def describe(broker, *users):
    """Return by user what there is, else code and text; of all users without any, None too."""
    request = DESCRIBE([DESCRIBE.UserName(user) for user in users])
    response = broker.ask(handle_describe_user_scram_credentials, request, 0)
    assert (response.error_code, response.error_message) == (NONE, "")
    if not users:
        response_to_null = broker.ask(handle_describe_user_scram_credentials, DESCRIBE(None), 0)
        assert response_to_null == response
    return {result.user: shown(result) for result in response.results}


def shown(result):
    if result.error_code:
        assert result.credential_infos == []
        return result.error_code, result.error_message
    assert result.error_message == ""
    return [(info.mechanism, info.iterations) for info in result.credential_infos]


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ([], {}),
        ([put(mechanism=0)], {"u": BAD_MECHANISM}),
        ([put(mechanism=UNKNOWN)], {"u": BAD_MECHANISM}),
        ([put(mechanism=-1)], {"u": BAD_MECHANISM}),
        ([put(iterations=4095)], {"u": TOO_FEW}),
        ([put(mechanism=SHA_512, iterations=4095)], {"u": TOO_FEW}),
        ([put(iterations=-1)], {"u": TOO_FEW}),
        ([put(iterations=16385)], {"u": TOO_MANY}),
        ([put("")], {"": NO_NAME}),
        ([drop("")], {"": NO_NAME}),
        ([put("", UNKNOWN, 1)], {"": NO_NAME}),
        ([put(mechanism=UNKNOWN, iterations=1)], {"u": BAD_MECHANISM}),
        ([drop(mechanism=9)], {"u": BAD_MECHANISM}),
        ([drop()], {"u": MISSING}),
        ([put(), put(mechanism=SHA_512)], {"u": DUPLICATE}),
        ([put(), put(mechanism=SHA_512), put()], {"u": DUPLICATE}),
        ([put(), put(mechanism=UNKNOWN)], {"u": DUPLICATE}),
        ([put(mechanism=UNKNOWN), put()], {"u": BAD_MECHANISM}),
        ([drop(), put()], {"u": MISSING}),
        ([put(salted_password=b"")], {"u": (SERVER_ERROR, None)}),
    ],
)
def test_refused_change_leaves_nothing(broker, changes, answer):
    assert alter(broker, *changes) == answer
    assert describe(broker) == {}


@pytest.mark.parametrize(
    "change",
    [
        put(iterations=4096),
        put(iterations=16384),
        put(mechanism=SHA_512),
        put(salt=b""),
        put(salted_password=b"x" * 200),
        put("ü,=\n"),
        put("n" * 300),
    ],
)
def test_credential_is_kept(broker, change):
    assert alter(broker, change) == {change.name: OK}
    expected = {change.name: [(change.mechanism, change.iterations)]}
    assert describe(broker, change.name) == describe(broker) == expected


def test_user_is_altered_once_in_a_request_whatever_the_mechanism(broker):
    alter(broker, put())
    assert alter(broker, drop(), put(mechanism=SHA_512)) == {"u": DUPLICATE}
    assert alter(broker, drop(), drop(mechanism=SHA_512)) == {"u": DUPLICATE}
    assert describe(broker, "u") == {"u": [(SHA_256, 4096)]}


def test_deletion_needs_the_mechanism_of_the_credential(broker):
    alter(broker, put())
    assert alter(broker, drop(mechanism=SHA_512)) == {"u": MISSING}
    assert alter(broker, drop()) == {"u": OK}
    assert describe(broker) == {}


def test_credential_is_replaced_and_the_other_mechanism_stays(broker):
    alter(broker, put(mechanism=SHA_512, iterations=8192))
    alter(broker, put())
    alter(broker, put(iterations=5000))
    assert describe(broker, "u") == {"u": [(SHA_256, 5000), (SHA_512, 8192)]}


def test_results_come_as_from_kafkas_hash_tables(broker):
    alter(broker, put("a"))
    users = [put(f"u{number}", 1 + number % 2, 4096 + number) for number in range(12)]
    in_order = ["u5", "u6", "u7", "u8", "u9", "u11", "u10", "u0", "u1", "u2", "u3", "u4"]
    assert list(alter(broker, *users)) == in_order
    mixed = [put("m1"), put(""), put("m2", 7), put("m3"), put("x1", 1, 1)]
    gone = [drop("u3", SHA_512), drop("gone"), drop("u1", SHA_512)]
    answer = alter(broker, *mixed, *gone)
    assert list(answer) == ["u1", "u3", "m1", "m3", "", "m2", "x1", "gone"]
    assert list(answer.values()) == [OK] * 4 + [NO_NAME, BAD_MECHANISM, TOO_FEW, MISSING]
    assert "-".join(describe(broker)) == "u5-a-u6-u7-u8-m1-u9-m3-u11-u10-u0-u2-u4"


def test_described_user_must_exist_and_be_named_once(broker):
    alter(broker, put("u0"), put("u2"))
    assert describe(broker, "u0", "nobody") == {
        "u0": [(SHA_256, 4096)],
        "nobody": (NOT_FOUND, "Attempt to describe a user credential that does not exist: nobody"),
    }
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: "
    assert describe(broker, "u0", "u0", "u2", "no", "no") == {
        "u0": (TWICE, f"{twice}u0"),
        "u2": [(SHA_256, 4096)],
        "no": (TWICE, f"{twice}no"),
    }
    assert list(describe(broker, "u2", "u0", "u5")) == ["u5", "u0", "u2"]


def test_broker_describes_what_it_has_heard_of(broker):
    broker.hold_metadata()
    assert alter(broker, put()) == {"u": OK}
    assert describe(broker) == {}
    broker.release_metadata()
    assert describe(broker) == {"u": [(SHA_256, 4096)]}


def test_every_broker_describes_users_also_after_its_restart():
    with VirtualCluster(3) as cluster:
        client = cluster.client()

        def ask(broker_id, request):
            pending = client.send(broker_id, request, 0)
            cluster.run_until(lambda: pending.done)
            return pending.response

        def described_by(broker_id):
            results = ask(broker_id, DESCRIBE(None)).results
            return {result.user: shown(result) for result in results}

        assert not ask(2, ALTER(upsertions=[put(iterations=8192)])).results[0].error_code
        cluster.advance(1_000)
        for broker_id in (1, 2, 3):
            assert described_by(broker_id) == {"u": [(SHA_256, 8192)]}
        cluster.kill(3)
        ask(1, ALTER([drop()], [put("other", SHA_512)]))
        cluster.start(3, end_session=True)
        cluster.advance(1_000)
        for broker_id in (1, 2, 3):
            assert described_by(broker_id) == {"other": [(SHA_512, 4096)]}
