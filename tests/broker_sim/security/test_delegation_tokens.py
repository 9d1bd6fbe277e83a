"""Logins by delegation token; what is refused is what Kafka 4.3.1 refuses."""

import base64
import random
from dataclasses import replace

import pytest

from broker_sim import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata import MetadataImage
from broker_sim.metadata.delegation_token import DelegationToken, token_hmac
from broker_sim.metadata.kafka_principal import KafkaPrincipal
from broker_sim.protocol import messages
from broker_sim.security import DelegationTokenCache, LoginFailedError

ALICE = KafkaPrincipal("User", "alice")
EXPIRY_MS = 1_060_000
TOKEN = DelegationToken("the-id", ALICE, ALICE, (), 1_000_000, 2_000_000, EXPIRY_MS)
PASSWORD = base64.b64encode(token_hmac("secret", TOKEN.token_id)).decode()
MECHANISM = "SCRAM-SHA-256"
HIDDEN = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


class Tokens:
    """What one broker knows."""

    def __init__(self, secret="secret"):
        self.image = MetadataImage(1, "cluster", delegation_tokens={TOKEN.token_id: TOKEN})
        cache = DelegationTokenCache(secret, lambda: self.image, random.Random(1))
        self.credential_of = cache.credential_of


@pytest.fixture
def tokens():
    return Tokens()


@pytest.fixture
def log_in(new_login, scram_client, tokens):
    """Return a function that plays a login by token and returns it, with the last answer."""

    def play(user=TOKEN.token_id, password=PASSWORD, mechanism=MECHANISM, **more):
        login = new_login(token_of=tokens.credential_of)
        login.handshake(mechanism)
        more = {"extensions": ",tokenauth=true", **more}
        client = scram_client(mechanism, user, password, **more)
        answer = login.tell(client.final(login.tell(client.first).auth_bytes))
        return login, answer

    return play


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("extensions", [",tokenauth=true", ",tokenauth=TRUE", ",x=y,tokenauth=true"])
def test_client_is_the_owner_until_the_token_ends(log_in, mechanism, extensions):
    login, answer = log_in(mechanism=mechanism, extensions=extensions)
    assert login.user == "User:alice"
    assert login.server.is_token_authenticated
    assert answer.session_lifetime_ms == EXPIRY_MS - login.now_ms == 60_000


def test_user_of_a_password_has_no_token(log_in):
    login, _ = log_in("billing", "secret", extensions="")
    assert login.user == "User:billing"
    assert not login.server.is_token_authenticated


@pytest.mark.parametrize(
    ("user", "password", "more"),
    [
        ("unknown", PASSWORD, {}),
        (TOKEN.token_id, "wrong", {}),
        (TOKEN.token_id, PASSWORD, {"extensions": ""}),
        (TOKEN.token_id, PASSWORD, {"extensions": ",TokenAuth=true"}),
        (TOKEN.token_id, PASSWORD, {"extensions": ",tokenauth=false"}),
        ("billing", "secret", {}),
    ],
)
def test_refused_login(log_in, decode_answer, user, password, more):
    with pytest.raises(LoginFailedError) as error:
        log_in(user, password, **more)
    answer = decode_answer(error.value.answer, 36, 2)
    assert answer.error_message == HIDDEN + MECHANISM


def test_authorization_id_is_that_of_the_token(log_in):
    login, _ = log_in(header=f"n,a={TOKEN.token_id},")
    assert login.user == "User:alice"
    with pytest.raises(LoginFailedError, match="different from username"):
        log_in(header="n,a=alice,")


def test_credential_is_derived_once_while_there_is_the_token(tokens):
    first = tokens.credential_of(TOKEN.token_id, 1)
    assert tokens.credential_of(TOKEN.token_id, 1).credential is first.credential
    tokens.image = replace(tokens.image, delegation_tokens={})
    assert tokens.credential_of(TOKEN.token_id, 1) is None


def test_without_a_secret_no_client_logs_in_by_token():
    assert Tokens(None).credential_of(TOKEN.token_id, 1) is None


class Clients:
    """Clients of a cluster in virtual time."""

    def __init__(self, cluster, scram_client):
        self.cluster = cluster
        self.scram_client = scram_client

    def ask(self, client, request, version):
        """Return the answer, None if the connection is closed instead."""
        pending = client.send(1, request, version)
        self.cluster.run_until(lambda: pending.done or pending.disconnected)
        return None if pending.disconnected else pending.response

    def tell(self, client, token):
        return self.ask(client, messages.SaslAuthenticateRequest(token), 2)

    def known(self):
        client = self.cluster.client()
        self.ask(client, messages.SaslHandshakeRequest("PLAIN"), 1)
        self.tell(client, b"\0billing\0secret")
        return client

    def by_token(self, token):
        """Return a client that has logged in by token, and the answer to it."""
        client = self.cluster.client()
        self.ask(client, messages.SaslHandshakeRequest(MECHANISM), 1)
        password = base64.b64encode(token.hmac).decode()
        scram = self.scram_client(MECHANISM, token.token_id, password, extensions=",tokenauth=true")
        challenge = self.tell(client, scram.first)
        if challenge.error_code:
            return client, challenge
        return client, self.tell(client, scram.final(challenge.auth_bytes))

    def create(self, client, max_lifetime_ms=-1):
        request = messages.CreateDelegationTokenRequest(max_lifetime_ms=max_lifetime_ms)
        return self.ask(client, request, 3)


@pytest.fixture
def clients(scram_client):
    configs = {"delegation.token.secret.key": "secret"}
    users = {"billing": "secret"}
    with VirtualCluster(1, security="sasl_plaintext", users=users, configs=configs) as cluster:
        yield Clients(cluster, scram_client)


def test_client_with_a_token_cannot_request_tokens(clients):
    token = clients.create(clients.known())
    assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "billing")
    clients.cluster.advance(10)
    client, answer = clients.by_token(token)
    assert answer.error_code == ErrorCode.NONE
    refused = clients.create(client)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert refused.principal_name == "billing"


def test_login_ends_with_the_token(clients):
    token = clients.create(clients.known(), 60_000)
    clients.cluster.advance(10)
    client, answer = clients.by_token(token)
    metadata = messages.MetadataRequest(topics=None)
    clients.cluster.advance(answer.session_lifetime_ms)
    assert clients.ask(client, metadata, 9) is not None
    clients.cluster.advance(1)
    assert clients.ask(client, metadata, 9) is None
    # Kafka lets a token log in until it is swept, and cuts its client off at the next request.
    client, answer = clients.by_token(token)
    assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 0)
    assert clients.ask(client, metadata, 9) is None
    clients.cluster.advance(3_600_000)
    _, answer = clients.by_token(token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
