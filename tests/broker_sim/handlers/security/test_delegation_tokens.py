"""What clients are told about delegation tokens, with the answers of Kafka 4.3.1."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.security.delegation_tokens import (
    handle_create_delegation_token,
    handle_describe_delegation_token,
    handle_expire_delegation_token,
    handle_renew_delegation_token,
)
from broker_sim.metadata.kafka_principal import KafkaPrincipal
from broker_sim.protocol import messages

CREATE, RENEW, EXPIRE, DESCRIBE = (
    messages.CreateDelegationTokenRequest,
    messages.RenewDelegationTokenRequest,
    messages.ExpireDelegationTokenRequest,
    messages.DescribeDelegationTokenRequest,
)
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "secret",
}
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DISABLED = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
DAY_MS, WEEK_MS = 86_400_000, 604_800_000


class Client:
    """A connection of somebody who has logged in."""

    sends_files, listener, ip, port = False, "SASL", "127.0.0.1", 40_000

    def __init__(self, broker, name, *, may_ask_for_tokens=True):
        self.broker = broker
        self.principal = KafkaPrincipal("User", name)
        self.may_ask_for_tokens = may_ask_for_tokens

    def ask(self, handler, request, version):
        return self.broker.ask(handler, request, version, connection=self)

    def create(self, owner="", renewers=(), version=3, kind="User"):
        rows = [CREATE.CreatableRenewers(*each.split(":")) for each in renewers]
        owners = (kind, owner) if owner else ("", "")
        return self.ask(handle_create_delegation_token, CREATE(*owners, rows, -1), version)

    def renew(self, hmac):
        return self.ask(handle_renew_delegation_token, RENEW(hmac, -1), 2)

    def expire(self, hmac):
        return self.ask(handle_expire_delegation_token, EXPIRE(hmac, -1), 2)

    def describe(self, *owners, version=3):
        """Return the answer for these owners, without any for all."""
        rows = [DESCRIBE.DescribeDelegationTokenOwner("User", owner) for owner in owners]
        request = DESCRIBE(rows or None)
        return self.ask(handle_describe_delegation_token, request, version)

    def sees(self, *owners):
        return sorted(token.principal_name for token in self.describe(*owners).tokens)


@pytest.fixture
def broker(make_broker):
    return make_broker(GUARDED)


def told(answer):
    return answer.error_code, answer.principal_name, answer.token_requester_principal_name


def test_client_creates_a_token_for_itself(broker):
    token = Client(broker, "alice").create(renewers=["User:bob"])
    now_ms = broker.clock.wall_clock_ms()
    assert told(token) == (ErrorCode.NONE, "alice", "alice")
    times = token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms
    assert times == (now_ms, now_ms + DAY_MS, now_ms + WEEK_MS)
    assert len(token.hmac) == 64
    (described,) = Client(broker, "bob").describe().tokens
    assert described.token_id == token.token_id
    assert described.hmac == token.hmac
    assert described.expiry_timestamp == token.expiry_timestamp_ms
    assert [renewer.principal_name for renewer in described.renewers] == ["bob"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_requester_is_told_from_version_3_on(broker, version):
    alice = Client(broker, "alice")
    assert told(alice.create(version=version))[2] == ("alice" if version == 3 else "")
    (described,) = alice.describe(version=version).tokens
    assert described.token_requester_principal_name == ("alice" if version == 3 else "")


def test_for_others_only_who_may_creates_tokens(broker):
    refused = Client(broker, "alice").create("bob")
    failed = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert told(refused) == (failed, "bob", "alice")
    times = refused.issue_timestamp_ms, refused.expiry_timestamp_ms, refused.max_timestamp_ms
    assert times == (-1, -1, -1)
    assert Client(broker, "alice").create("alice", kind="Group").error_code == failed
    assert told(Client(broker, "admin").create("bob")) == (ErrorCode.NONE, "bob", "admin")
    denial = broker.denials.find("User:alice")[0]
    assert (denial.operation, denial.resource) == ("CREATE_TOKENS", "User:bob")


def test_renewer_must_be_a_user(broker):
    answer = Client(broker, "alice").create(renewers=["Group:g"])
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert answer.issue_timestamp_ms == -1


def test_description_has_what_the_client_may_see(broker):
    alice, bob, carol, admin = (Client(broker, name) for name in ("alice", "bob", "carol", "admin"))
    alice.create(renewers=["User:bob"])
    alice.create()
    admin.create("carol")
    assert alice.sees() == alice.sees("alice") == ["alice", "alice"]
    assert alice.sees("bob") == bob.sees() == bob.sees("alice") == bob.sees("bob") == ["alice"]
    assert carol.sees() == ["carol"]
    assert carol.sees("alice") == []
    assert admin.sees() == ["alice", "alice", "carol"]
    assert admin.sees("bob", "carol") == ["alice", "carol"]
    empty = admin.ask(handle_describe_delegation_token, DESCRIBE([]), 3)
    assert (empty.error_code, empty.tokens) == (ErrorCode.NONE, [])


def test_token_is_renewed_and_expired_by_its_hmac(broker):
    alice, carol = Client(broker, "alice"), Client(broker, "carol")
    token = alice.create()
    hmac = bytes(token.hmac)
    renewed = alice.renew(hmac)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, token.expiry_timestamp_ms)
    for refused, code in (
        (carol.renew(hmac), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (carol.expire(hmac), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (alice.renew(b"unknown"), ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (alice.expire(b""), ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
    ):
        assert (refused.error_code, refused.expiry_timestamp_ms) == (code, 0)
    expired = alice.expire(hmac)
    assert (expired.error_code, expired.expiry_timestamp_ms) == (0, broker.clock.wall_clock_ms())
    assert alice.sees() == []


def test_who_is_not_known_by_a_login_of_its_own_asks_in_vain(broker):
    client = Client(broker, "alice", may_ask_for_tokens=False)
    created = client.create()
    assert told(created) == (NOT_ALLOWED, "alice", "alice")
    assert created.max_timestamp_ms == -1
    for answer in (client.renew(b"x"), client.expire(b"x")):
        assert (answer.error_code, answer.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
    assert client.describe().error_code == NOT_ALLOWED


def test_without_a_secret_tokens_are_disabled(make_broker):
    alice = Client(make_broker({}), "alice")
    created = alice.create("bob")
    assert told(created) == (DISABLED, "bob", "alice")
    assert (created.issue_timestamp_ms, created.max_timestamp_ms) == (0, 0)
    for answer in (alice.renew(b"x"), alice.expire(b"x")):
        assert (answer.error_code, answer.expiry_timestamp_ms) == (DISABLED, 0)
    assert alice.describe().error_code == DISABLED
