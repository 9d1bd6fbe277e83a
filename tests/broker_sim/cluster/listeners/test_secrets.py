"""No password, token or key of a user is in anything that a cluster says."""

import base64

import pytest

from broker_sim import VirtualCluster
from broker_sim.protocol import messages

PASSWORD = "pa55word-of-billing"
KEY = "key-of-all-tokens"
SALTED = "sa1ted-password-of-32-bytes....."
WRONG = "wr0ng-password"
LATER = "later-pa55word"
JAAS_PASSWORD = "pa55word-in-jaas"
CLAIMS = '{"sub":"billing","exp":4000000000,"jti":"t0ken"}'
TOKEN = base64.urlsafe_b64encode(CLAIMS.encode()).decode().rstrip("=")
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_audit="{JAAS_PASSWORD}";'
CONFIGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
    "delegation.token.secret.key": KEY,
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
}
LOGINS = [
    ("PLAIN", f"\0billing\0{PASSWORD}"),
    ("PLAIN", f"\0billing\0{WRONG}"),
    ("PLAIN", f"{PASSWORD}"),
    ("PLAIN", f"\0{WRONG}\0{PASSWORD}\0more"),
    ("SCRAM-SHA-256", f"n,,n=billing,r=abc,p={PASSWORD}"),
    ("OAUTHBEARER", f"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.{TOKEN}.\x01\x01"),
    ("OAUTHBEARER", f"n,,\x01auth=Bearer {TOKEN}\x01\x01"),
    ("OAUTHBEARER", f"n,,\x01auth=Basic {TOKEN}\x01\x01"),
]


def say(cluster, client, request, version):
    pending = client.send(1, request, version)
    cluster.run_until(lambda: pending.done or pending.disconnected)
    return None if pending.disconnected else pending.response


def everything_said(cluster):
    """Return all that a user can ask for, by where it stands, and a delegation token."""
    salted = SALTED.encode()
    alter = messages.AlterUserScramCredentialsRequest
    upsertion = alter.ScramCredentialUpsertion("more", 1, 4_096, b"salt", salted)
    resource = messages.DescribeConfigsRequest.DescribeConfigsResource(4, "1", None)
    known = cluster.client()
    say(cluster, known, messages.SaslHandshakeRequest("PLAIN"), 1)
    for _ in range(2):  # the second one is a request like others
        token = f"\0billing\0{PASSWORD}".encode()
        assert say(cluster, known, messages.SaslAuthenticateRequest(token), 2)
    token = say(cluster, known, messages.CreateDelegationTokenRequest(max_lifetime_ms=-1), 1)
    assert not token.error_code
    token_text = repr(bytes(token.hmac))[2:-1]  # as it would stand in a message
    renewal = messages.RenewDelegationTokenRequest(bytes(token.hmac), 1_000)
    assert not say(cluster, known, renewal, 1).error_code
    assert not say(cluster, known, alter([], [upsertion]), 0).results[0].error_code
    described = say(cluster, known, messages.DescribeConfigsRequest([resource]), 1)
    assert described.results[0].configs
    said = {
        "status": cluster.status(),
        "requests": cluster.requests(),
        "denials": cluster.denials(),
        "described configurations": described,
        "listeners": list(cluster.inside.listeners.all),
        "configurations": [broker.config for broker in cluster.nodes.brokers.values()],
    }
    return said, token_text


def test_no_output_of_a_cluster_contains_a_secret(tmp_path, caplog, capfd):
    caplog.set_level("DEBUG")
    trace = tmp_path / "trace.jsonl"
    options = {"security": "sasl_plaintext", "users": {"billing": PASSWORD}, "configs": CONFIGS}
    with VirtualCluster(1, **options, trace=trace) as cluster:
        cluster.keep_requests()
        for mechanism, token in LOGINS:
            client = cluster.client()
            say(cluster, client, messages.SaslHandshakeRequest(mechanism), 1)
            say(cluster, client, messages.SaslAuthenticateRequest(token.encode()), 2)
        cluster.set_password("billing", LATER)
        cluster.set_password(user="billing", password=LATER)
        with pytest.raises(LookupError) as unknown:
            cluster.set_password("nobody", LATER)
        cluster.set_password("billing", PASSWORD)
        said, told = everything_said(cluster)
        said |= {"unknown": unknown.value, "events": cluster.trace.recent}
    said |= {"trace": trace.read_text("utf-8"), "logs": caplog.text, "output": capfd.readouterr()}
    assert "failed authentication" in said["logs"]
    secrets = [PASSWORD, WRONG, LATER, JAAS_PASSWORD, TOKEN, SALTED, KEY, told]
    found = [(where, s) for where, what in said.items() for s in secrets if s in f"{what!r} {what}"]
    assert not found
    assert any("set_password billing <hidden>" in event for event in said["events"])
    asked = {request.api for request in said["requests"]}
    assert {"SaslAuthenticate", "AlterUserScramCredentials", "RenewDelegationToken"} <= asked
