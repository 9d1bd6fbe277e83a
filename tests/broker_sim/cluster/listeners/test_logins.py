"""Logins at the brokers of a cluster, in virtual time."""

import base64
import hmac

import pytest

from broker_sim import AsyncCluster, VirtualCluster
from broker_sim.controller import ScramUpsertion
from broker_sim.errors import ConfigError, ErrorCode
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.protocol import messages

USERS = {"billing": "secret"}
PLAIN = b"\0billing\0secret"
SCRAM_FIRST = b"n,,n=%s,r=abc"


@pytest.fixture
def cluster():
    with VirtualCluster(1, security="sasl_plaintext", users=USERS, topics=["t:1:1"]) as running:
        yield running


def ask(cluster, client, request, version):
    """Return the answer, None if the connection is closed instead."""
    pending = client.send(1, request, version)
    cluster.run_until(lambda: pending.done or pending.disconnected)
    return None if pending.disconnected else pending.response


def log_in(cluster, client, token, mechanism="PLAIN"):
    ask(cluster, client, messages.SaslHandshakeRequest(mechanism=mechanism), 1)
    return ask(cluster, client, messages.SaslAuthenticateRequest(auth_bytes=token), 2)


def metadata(cluster, client):
    return ask(cluster, client, messages.MetadataRequest(topics=None), 9)


def test_client_that_has_logged_in_is_served(cluster):
    client = cluster.client()
    assert ask(cluster, client, messages.ApiVersionsRequest("x", "1"), 3).error_code == 0
    assert log_in(cluster, client, PLAIN).error_code == ErrorCode.NONE
    seen = metadata(cluster, client)
    assert [topic.name for topic in seen.topics] == ["t"]
    assert (seen.brokers[0].host, seen.brokers[0].port) == cluster.inside.address(1)


def test_client_that_has_not_is_cut_off(cluster):
    assert metadata(cluster, cluster.client()) is None
    client = cluster.client()
    ask(cluster, client, messages.ApiVersionsRequest("x", "1"), 3)
    assert metadata(cluster, client) is None


@pytest.mark.parametrize("delay_ms", [None, 0, 250])
def test_failed_login_is_answered_and_closed_after_the_delay(delay_ms):
    name = "connection.failed.authentication.delay.ms"
    configs = {} if delay_ms is None else {name: delay_ms}
    with VirtualCluster(1, security="sasl_plaintext", users=USERS, configs=configs) as cluster:
        client = cluster.client()
        before_ms = cluster.now_ms
        answer = log_in(cluster, client, b"\0billing\0wrong")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert cluster.now_ms - before_ms == (100 if delay_ms is None else delay_ms)
        assert metadata(cluster, client) is None


def test_request_may_be_large_only_after_the_login(cluster):
    large = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="x" * 30_000)] * 20)
    assert log_in(cluster, cluster.client(), bytes(600_000)) is None
    client = cluster.client()
    log_in(cluster, client, PLAIN)
    assert len(ask(cluster, client, large, 0).topics) == 1


def test_login_comes_too_late_once_the_client_is_known(cluster):
    client = cluster.client()
    log_in(cluster, client, PLAIN)
    again = log_in(cluster, client, PLAIN)
    assert again.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert again.error_message == "SaslAuthenticate request received after successful authentication"
    assert metadata(cluster, client) is not None


@pytest.fixture
def short_sessions():
    configs = {"connections.max.reauth.ms": 5_000}
    with VirtualCluster(1, security="sasl_plaintext", users=USERS, configs=configs) as running:
        yield running


def test_client_that_logs_in_again_in_time_stays(short_sessions):
    client = short_sessions.client()
    for _ in range(3):
        assert log_in(short_sessions, client, PLAIN).session_lifetime_ms == 5_000
        assert metadata(short_sessions, client) is not None
        short_sessions.advance(5_000)


def test_client_that_does_not_is_cut_off_at_its_next_request(short_sessions):
    client = short_sessions.client()
    log_in(short_sessions, client, PLAIN)
    short_sessions.advance(5_000)
    assert metadata(short_sessions, client) is not None
    short_sessions.advance(1)
    assert metadata(short_sessions, client) is None


def test_client_may_log_in_again_once_a_second(short_sessions):
    client = short_sessions.client()
    log_in(short_sessions, client, PLAIN)
    assert log_in(short_sessions, client, PLAIN).error_code == ErrorCode.NONE
    short_sessions.advance(999)
    assert log_in(short_sessions, client, PLAIN).error_code == ErrorCode.ILLEGAL_SASL_STATE
    short_sessions.advance(1)
    assert log_in(short_sessions, client, PLAIN).error_code == ErrorCode.NONE


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS.values(), ids=lambda each: each.name)
def test_stored_credentials_count_for_the_next_login(cluster, mechanism):
    def challenge(user):
        return log_in(cluster, cluster.client(), SCRAM_FIRST % user, mechanism.name).auth_bytes

    assert b",i=4096" in bytes(challenge(b"billing"))
    assert not challenge(b"later")
    salted = mechanism.salted_password("x", b"salt", 5000)
    cluster.nodes.controller.alter_user_scram_credentials(
        [], [ScramUpsertion("later", mechanism.code, 5000, b"salt", salted)]
    )
    cluster.advance(10)
    assert bytes(challenge(b"later")).endswith(b",s=c2FsdA==,i=5000")


def scram_proof(cluster, password, mechanism=SCRAM_MECHANISMS[1]):
    """Log in by SCRAM; return the error code of the last answer."""
    client = cluster.client()
    first = bytes(log_in(cluster, client, SCRAM_FIRST % b"billing", mechanism.name).auth_bytes)
    nonce, salt, _ = first.split(b",")
    final = b"c=biws," + nonce
    told = b"n=billing,r=abc," + first + b"," + final
    salted = mechanism.salted_password(password, base64.b64decode(salt[2:]), 4096)
    key = hmac.digest(salted, b"Client Key", mechanism.digest)
    signature = mechanism.signature(mechanism.stored_key(key), told)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))
    request = messages.SaslAuthenticateRequest(auth_bytes=final + b",p=" + proof)
    return ask(cluster, client, request, 2).error_code


def test_another_password_counts_for_logins_from_now_on():
    wrong, none = ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.NONE
    with VirtualCluster(2, security="sasl_plaintext", users=USERS) as cluster:
        client = cluster.client()
        assert scram_proof(cluster, "secret") == none
        log_in(cluster, client, PLAIN)
        cluster.set_password("billing", "new")
        assert metadata(cluster, client) is not None  # it has logged in
        assert log_in(cluster, cluster.client(), PLAIN).error_code == wrong
        assert scram_proof(cluster, "secret") == wrong
        assert log_in(cluster, cluster.client(), b"\0billing\0new").error_code == none
        assert [scram_proof(cluster, "new", each) for each in SCRAM_MECHANISMS.values()] == [0, 0]
        assert cluster.inside.client_config("confluent")["sasl.password"] == "new"
        cluster.reset()
        assert log_in(cluster, cluster.client(), PLAIN).error_code == none
        assert scram_proof(cluster, "secret") == none


def test_scram_only_user_can_get_another_password(cluster):
    code = SCRAM_MECHANISMS[1].code
    salted = SCRAM_MECHANISMS[1].salted_password("x", b"salt", 5000)
    upsertion = ScramUpsertion("later", code, 5000, b"salt", salted)
    cluster.nodes.controller.alter_user_scram_credentials([], [upsertion])
    before = cluster.nodes.controller.image.scram["later"]
    cluster.set_password("later", "y")
    after = cluster.nodes.controller.image.scram["later"]
    assert list(after) == [code]
    assert after[code].stored_key != before[code].stored_key
    assert log_in(cluster, cluster.client(), b"\0later\0y").error_code


def test_password_of_an_unknown_user_or_an_empty_one_is_rejected(cluster):
    with pytest.raises(LookupError, match="unknown user 'nobody'"):
        cluster.set_password("nobody", "new")
    with pytest.raises(ConfigError, match="password of 'billing' must be a non-empty text"):
        cluster.set_password("billing", "")


def test_connections_live_on_without_their_credential_until_they_are_ended():
    users = {"billing": "secret", "audit": "other"}
    with VirtualCluster(2, security="sasl_plaintext", users=users) as cluster:
        billing, audit, later = cluster.client(), cluster.client(), cluster.client()
        for client, token in ((billing, PLAIN), (audit, b"\0audit\0other")):
            log_in(cluster, client, token)
        code = SCRAM_MECHANISMS[1].code
        deletion = messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion
        request = messages.AlterUserScramCredentialsRequest([deletion("billing", code)], [])
        assert not ask(cluster, billing, request, 0).results[0].error_code
        assert metadata(cluster, billing) is not None
        refused = log_in(cluster, later, SCRAM_FIRST % b"billing", "SCRAM-SHA-256")
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        cluster.end_connections("billing")
        assert metadata(cluster, billing) is None
        assert metadata(cluster, audit) is not None
        cluster.end_connections("User:audit")
        assert metadata(cluster, audit) is None


def test_login_hangs_while_clients_are_cut_off(cluster):
    cluster.disconnect_clients(1)
    pending = cluster.client().send(1, messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    cluster.advance(60_000)
    assert not pending.done
    assert not pending.disconnected
    cluster.reconnect_clients(1)
    cluster.run_until(lambda: pending.done)


def test_users_are_there_after_a_reset(cluster):
    before = cluster.nodes.controller.image.scram["billing"]
    cluster.reset()
    assert cluster.nodes.controller.image.scram == {"billing": before}
    assert log_in(cluster, cluster.client(), PLAIN).error_code == ErrorCode.NONE


def test_listeners_may_differ():
    configs = {
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    text = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    with VirtualCluster(1, listeners=text, configs=configs, users=USERS) as cluster:
        assert metadata(cluster, cluster.client(listener="INSIDE")) is not None
        assert metadata(cluster, cluster.client(listener="OUTSIDE")) is None
        client = cluster.client(listener="OUTSIDE")
        log_in(cluster, client, PLAIN)
        assert metadata(cluster, client) is not None


def test_a_listener_with_the_name_of_a_protocol_has_that_protocol():
    text = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    with VirtualCluster(1, listeners=text, users=USERS) as cluster:
        assert metadata(cluster, cluster.client(listener="PLAINTEXT")) is not None
        assert metadata(cluster, cluster.client(listener="SASL_PLAINTEXT")) is None
        client = cluster.client(listener="SASL_PLAINTEXT")
        log_in(cluster, client, PLAIN)
        assert metadata(cluster, client) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security": "tls"}, "security must be one of plaintext, ssl, sasl_plaintext, sasl_ssl, not 'tls'"),
        ({"users": USERS}, "users need a listener with logins; pass security='sasl_plaintext' or 'sasl_ssl'"),
        ({"security": "sasl_plaintext"}, "listener SASL_PLAINTEXT has no users for PLAIN"),
        ({"users": ["billing"]}, "users must be a mapping such as {'billing': 'secret'}"),
        ({"users": {"": "secret"}}, "a name must be a non-empty text, not ''"),
        ({"users": {"billing": ""}}, "the password of 'billing' must be a non-empty text"),
        ({"users": {"billing": b"secret"}}, "the password of 'billing' must be a non-empty text"),
        # As Python reads an argument that is not UTF-8.
        ({"users": {"billing": "\udcff"}}, "the password of 'billing' must be a non-empty text"),
        ({"users": {"\udcff": "secret"}}, "a name must be a non-empty text"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ConfigError, match=message) as error:
        AsyncCluster(1, **options)
    assert "secret" not in str(error.value).replace("'billing': 'secret'", "")


def test_described_configuration_hides_the_users():
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="secret";'
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    resource = messages.DescribeConfigsRequest.DescribeConfigsResource(4, "1", None)
    request = messages.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    with VirtualCluster(1, security="sasl_plaintext", configs={name: line}) as cluster:
        client = cluster.client()
        assert log_in(cluster, client, b"\0a\0secret").error_code == ErrorCode.NONE
        (result,) = ask(cluster, client, request, 1).results
    found = {entry.name: entry for entry in result.configs}
    assert (found[name].value, found[name].is_sensitive) == (None, True)
    assert "user_a" not in repr(result)


def test_status_of_a_cluster_contains_no_password(cluster, caplog):
    cluster.keep_requests(100)
    with caplog.at_level(0):
        client = cluster.client()
        log_in(cluster, client, PLAIN)
        log_in(cluster, client, PLAIN)  # too late, so it is kept as a request
        for token in (b"\0billing\0mistyped", b"secret", b"n,,n=billing,r=a"):
            log_in(cluster, cluster.client(), token)
    kept = cluster.requests()
    assert "SaslAuthenticate" in {each.api for each in kept}
    assert "failed authentication" in caplog.text
    told = f"{caplog.text}{kept}{kept.to_json()}{cluster.status()}{cluster.inside.listeners.all}"
    assert not any(word in told for word in ("secret'", "mistyped", "\\x00secret"))


def jaas(**passwords):
    users = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


def test_users_set_at_run_time_are_not_in_effect_at_the_next_start_either():
    # As on a running 4.3.1, which was started again twice, the second time from a snapshot with the new line.
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    configs = {"sasl.enabled.mechanisms": "PLAIN", name: jaas(billing="secret")}
    with VirtualCluster(1, security="sasl_plaintext", configs=configs) as cluster:
        client = cluster.client()
        log_in(cluster, client, PLAIN)
        alter = messages.IncrementalAlterConfigsRequest
        line = alter.AlterableConfig(name=name, config_operation=0, value=jaas(billing="new"))
        resource = alter.AlterConfigsResource(resource_type=4, resource_name="1", configs=[line])
        (response,) = ask(cluster, client, alter(resources=[resource]), 1).responses
        assert response.error_code == ErrorCode.NONE
        cluster.stop(1)
        cluster.start(1)
        assert log_in(cluster, cluster.client(), PLAIN).error_code == ErrorCode.NONE
        assert log_in(cluster, cluster.client(), b"\0billing\0new").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
