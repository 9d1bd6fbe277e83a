"""Which signed tokens are good; what is refused is what Kafka 4.3.1 refuses."""

import base64
import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from broker_sim import VirtualCluster
from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security import TokenIssuer
from broker_sim.security.bearer_token import IllegalTokenError, Token
from broker_sim.security.json_web_keys import JsonWebKeys
from broker_sim.security.sasl_listener import sasl_listener
from broker_sim.security.signed_tokens import SignedTokens

NOW_S = 1_000
HANDLER = "oauthbearer.sasl.server.callback.handler.class"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
SIGNED = {"sasl.enabled.mechanisms": "OAUTHBEARER", f"listener.name.sasl_plaintext.{HANDLER}": VALIDATOR}
HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}


def text(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value, size=None):
    return text(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class RsaKey:
    """A key of RSA; its members are those of a set."""

    def __init__(self, bits=2_048, **members):
        self.key = rsa.generate_private_key(65_537, bits)
        public = self.key.public_key().public_numbers()
        self.members = {"kty": "RSA", "n": number(public.n), "e": number(public.e), **members}

    def sign(self, algorithm, told):
        return self.key.sign(told, padding.PKCS1v15(), HASHES[algorithm[2:]]())


class EcKey:
    """A key of an elliptic curve."""

    def __init__(self, curve="P-256", **members):
        self.key = ec.generate_private_key(getattr(ec, f"SECP{curve[2:]}R1")())
        self.size = (self.key.key_size + 7) // 8
        public = self.key.public_key().public_numbers()
        place = {"x": number(public.x, self.size), "y": number(public.y, self.size)}
        self.members = {"kty": "EC", "crv": curve, **place, **members}

    def sign(self, algorithm, told):
        halves = utils.decode_dss_signature(self.key.sign(told, ec.ECDSA(HASHES[algorithm[2:]]())))
        return b"".join(each.to_bytes(self.size, "big") for each in halves)


@pytest.fixture(scope="module")
def rsa_key():
    """Return the only long key: making one takes 50 ms."""
    return RsaKey(kid="rsa", use="sig", alg="RS256")


@pytest.fixture(scope="module")
def key():
    return EcKey(kid="ec")


def jwt(key, algorithm="ES256", header=None, **claims):
    head = {"alg": algorithm, "kid": key.members.get("kid"), **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    body = {"sub": "billing", "iat": NOW_S, "exp": NOW_S + 60, **claims}
    body = {name: value for name, value in body.items() if value is not None}
    told = f"{text(json.dumps(head).encode())}.{text(json.dumps(body).encode())}"
    return f"{told}.{text(key.sign(algorithm, told.encode()))}"


def check(token, *keys, now_s=NOW_S, **asked):
    return SignedTokens(JsonWebKeys([each.members for each in keys]), **asked).validate(token, now_s * 1_000)


def is_good(*args, **asked):
    try:
        check(*args, **asked)
    except IllegalTokenError:
        return False
    return True


GOOD = Token("billing", (NOW_S + 60) * 1_000)


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512"])
def test_rsa(rsa_key, algorithm):
    assert check(jwt(rsa_key, algorithm), rsa_key) == GOOD


@pytest.mark.parametrize(("algorithm", "curve"), [("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521")])
def test_elliptic_curves(algorithm, curve):
    key = EcKey(curve)
    assert check(jwt(key, algorithm), key) == GOOD


def test_signature_of_another_key_is_refused(key, rsa_key):
    other = EcKey(kid="ec")
    assert not is_good(jwt(other), key)
    assert not is_good(jwt(rsa_key, "RS256"), key)
    head, body, signature = jwt(key).split(".")
    assert not is_good(f"{head}.{text(json.dumps({'sub': 'admin'}).encode())}.{signature}", key)
    assert not is_good(f"{head}.{body}.{signature[:-4]}", key)
    assert not is_good(f"{head}.{body}.", key)
    assert not is_good(f"{head}.{body}", key)
    assert not is_good(f"{text(json.dumps({'alg': 'none'}).encode())}.{body}.{signature}", key)
    assert not is_good(jwt(key, header={"alg": "HS256"}), key)
    assert not is_good(jwt(key, header={"crit": ["x"]}), key)


def test_short_rsa_key_is_refused():
    short = RsaKey(1_024)
    assert not is_good(jwt(short, "RS256"), short)


def test_key_is_found_among_others(key, rsa_key):
    others = [rsa_key, EcKey(kid="other"), EcKey("P-384", kid="ec")]
    assert is_good(jwt(key), *others, key)
    assert not is_good(jwt(key, header={"kid": "unknown"}), key)
    for_encryption = EcKey(use="enc")
    assert not is_good(jwt(for_encryption), for_encryption)
    # Without the id of a key the first that fits is taken.
    assert is_good(jwt(key, header={"kid": None}), key, others[1])
    assert not is_good(jwt(key, header={"kid": None}), others[1], key)


@pytest.mark.parametrize(("now_s", "good"), [(NOW_S + 89, True), (NOW_S + 90, False), (NOW_S - 10_000, True)])
def test_token_ends_after_the_clock_skew(key, now_s, good):
    assert is_good(jwt(key), key, now_s=now_s) is good
    assert is_good(jwt(key), key, now_s=now_s - 30, clock_skew_s=0) is good


@pytest.mark.parametrize(("now_s", "good"), [(NOW_S - 20, True), (NOW_S - 21, False)])
def test_token_begins_before_the_clock_skew(key, now_s, good):
    assert is_good(jwt(key, nbf=NOW_S + 10), key, now_s=now_s) is good


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": None},
        {"exp": None},
        {"exp": "soon"},
        {"iat": True},
        {"iat": -1},
        {"iat": NOW_S + 61},
        {"nbf": NOW_S + 61},
        {"exp": float("inf")},
        {"sub": None},
        {"sub": " "},
        {"sub": 7},
        {"scope": ["a", "a"]},
        {"scope": ["a", " "]},
        {"scope": ""},
        {"aud": "somebody"},
        {"aud": [7]},
        {"iss": 7},
        {"jti": 7},
    ],
)
def test_claims_that_are_refused(key, claims):
    assert not is_good(jwt(key, **claims), key)


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": NOW_S + 60},
        {"nbf": NOW_S + 30},
        {"exp": NOW_S + 60.5},
        {"scope": None},
        {"scope": "a b a"},
        {"scope": 7},
        {"iss": "somebody"},
    ],
)
def test_claims_that_are_good(key, claims):
    assert is_good(jwt(key, header={"crit": []}, **claims), key)


def test_invalid_scope_closes_the_connection(key):
    with pytest.raises(ProtocolError):
        check(jwt(key, scope=[7]), key)


@pytest.mark.parametrize(
    ("audience", "good"), [("a", True), (["x", "b"], True), ("x", False), (["x"], False), (None, False)]
)
def test_audience(key, audience, good):
    assert is_good(jwt(key, aud=audience), key, audiences=("a", "b")) is good


@pytest.mark.parametrize(("issuer", "good"), [("me", True), ("you", False), (None, False)])
def test_issuer(key, issuer, good):
    assert is_good(jwt(key, iss=issuer), key, issuer="me") is good


def test_claims_may_have_other_names(key):
    found = check(jwt(key, sub=None, email=" a ", roles=["x", "y"]), key, principal_claim="email", scope_claim="roles")
    assert found.principal == "a"


def test_keys_of_a_file(tmp_path, key):
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [key.members]}))
    configs = {**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": file.as_uri()}
    found = sasl_listener(BrokerConfig.from_mapping(configs), "SASL_PLAINTEXT", None)
    assert found.tokens.validate(jwt(key), NOW_S * 1_000) == GOOD
    assert found.takes_signed_tokens
    assert found.own_token is None


AUDIENCE, ISSUER = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"
ANY_AUDIENCE, ANY_ISSUER = "sasl.oauthbearer.allow.unverified.audience", "sasl.oauthbearer.allow.unverified.issuer"


@pytest.mark.parametrize("audience", [{AUDIENCE: "a"}, {ANY_AUDIENCE: "true"}, {}])
@pytest.mark.parametrize("issuer", [{ISSUER: "me"}, {ANY_ISSUER: "true"}, {}])
def test_keys_need_an_audience_and_an_issuer_from_4_4_on(tmp_path, key, audience, issuer):
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [key.members]}))
    configs = {**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(), **audience, **issuer}
    config = BrokerConfig.from_mapping(configs)
    assert sasl_listener(config, "SASL_PLAINTEXT", None)
    if audience and issuer:
        tokens = sasl_listener(config, "SASL_PLAINTEXT", None, verifies_claims=True).tokens
        assert tokens.validate(jwt(key, aud="a", iss="me"), NOW_S * 1_000) == GOOD
        return
    missing = ISSUER if audience else AUDIENCE
    with pytest.raises(ConfigError, match=f'requires "{missing}" to be configured'):
        sasl_listener(config, "SASL_PLAINTEXT", None, verifies_claims=True)


def test_token_for_anybody_is_good_where_any_audience_is_allowed(key):
    assert is_good(jwt(key, aud="x"), key, allows_any_audience=True)
    assert not is_good(jwt(key, aud="x"), key, audiences=("a",), allows_any_audience=True)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys": [1]}', None])
def test_file_without_keys_is_refused(tmp_path, content):
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match="no JSON Web Key Set"):
        JsonWebKeys.read(file.as_uri())


def test_url_must_be_one_that_is_served():
    with pytest.raises(ConfigError, match="must be a URL"):
        JsonWebKeys.read("data:application/json,{}")


def test_cluster_signs_the_requested_claims():
    configs = {
        **SIGNED,
        "sasl.oauthbearer.expected.audience": "a,b",
        "sasl.oauthbearer.expected.issuer": "me",
        "listener.name.sasl_plaintext.sasl.oauthbearer.sub.claim.name": "email",
    }
    config = BrokerConfig.from_mapping(configs)
    issuer = TokenIssuer()
    found = sasl_listener(config, "SASL_PLAINTEXT", None, issuer)
    assert found.tokens.validate(found.own_token("a"), NOW_S * 1_000).principal == "a"
    with pytest.raises(IllegalTokenError):
        found.tokens.validate(TokenIssuer().token("a", config), NOW_S * 1_000)


def test_unsigned_token_is_refused_by_a_cluster_that_wants_signed_ones(decode_answer):
    with VirtualCluster(1, security="sasl_plaintext", configs=SIGNED) as cluster:

        def log_in(token):
            client = cluster.client()
            for request, version in (
                (messages.SaslHandshakeRequest("OAUTHBEARER"), 1),
                (messages.SaslAuthenticateRequest(f"n,,\1auth=Bearer {token}\1\1".encode()), 2),
            ):
                pending = client.send(1, request, version)
                cluster.run_until(lambda pending=pending: pending.done)
            return bytes(pending.response.auth_bytes)

        config = cluster.inside.client_config("confluent", user="billing")
        token, _ = config["oauth_cb"]("")
        assert log_in(token) == b""
        _, body, _ = token.split(".")
        unsigned = text(json.dumps({"alg": "none"}).encode())
        assert log_in(f"{unsigned}.{body}.x") == b'{"status":"invalid_token"}'
