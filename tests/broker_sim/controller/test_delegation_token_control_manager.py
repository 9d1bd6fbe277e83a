"""How delegation tokens are made, renewed and ended, with the codes of Kafka 4.3.1."""

import random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.controller import DEFAULT_FEATURES, Controller
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.delegation_token import token_hmac
from broker_sim.metadata.kafka_principal import KafkaPrincipal

ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
START_MS = 1_000_000
DAY_MS, WEEK_MS, HOUR_MS = 86_400_000, 604_800_000, 3_600_000
FOREVER = (1 << 63) - 1
DISABLED = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
NOT_FOUND = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
MISMATCH = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
EXPIRED = ErrorCode.DELEGATION_TOKEN_EXPIRED


class Tokens:
    """A controller; a refusal comes back as its code."""

    def __init__(self, secret="secret", features=DEFAULT_FEATURES, **configs):
        self.clock = VirtualClock(wall_start_ms=START_MS)
        self.controller = Controller(
            self.clock,
            random.Random(1),
            BrokerConfig(delegation_token_secret_key=secret, **configs),
            publish=lambda _: None,
            cluster_id="cluster",
            features=features,
        )

    @property
    def kept(self):
        return self.controller.image.delegation_tokens

    def create(self, owner=ALICE, renewers=(), max_lifetime_ms=-1):
        return self.controller.create_delegation_token(owner, ALICE, renewers, max_lifetime_ms)

    def renew(self, token, who=ALICE, period_ms=-1):
        return self.change(self.controller.renew_delegation_token, token, who, period_ms)

    def expire(self, token, who=ALICE, period_ms=-1):
        return self.change(self.controller.expire_delegation_token, token, who, period_ms)

    def change(self, verb, token, who, period_ms):
        try:
            return verb(who, token_hmac("secret", token.token_id), period_ms) - START_MS
        except ApiError as error:
            return error.error_code

    def pass_ms(self, duration_ms):
        """Let time pass and the controller do what is due."""
        end_ms = self.clock.now_ms() + duration_ms
        while (due_ms := self.controller.next_deadline_ms()) <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.now_ms()))
            self.controller.tick()
        self.clock.advance(end_ms - self.clock.now_ms())


def code_of(call):
    with pytest.raises(ApiError) as error:
        call()
    return error.value.error_code


@pytest.mark.parametrize(
    ("asked_ms", "expiry_ms", "max_ms"),
    [
        (-1, DAY_MS, WEEK_MS),
        (0, DAY_MS, WEEK_MS),
        (FOREVER, DAY_MS, WEEK_MS),
        (5_000, 5_000, 5_000),
        (2 * DAY_MS, DAY_MS, 2 * DAY_MS),
    ],
)
def test_token_ends_after_a_day_and_its_lifetime(asked_ms, expiry_ms, max_ms):
    tokens = Tokens()
    token = tokens.create(renewers=[BOB], max_lifetime_ms=asked_ms)
    assert token.issue_timestamp_ms == START_MS
    assert token.expiry_timestamp_ms - START_MS == expiry_ms
    assert token.max_timestamp_ms - START_MS == max_ms
    assert tokens.kept == {token.token_id: token}
    assert token.renewers == (BOB,)


def test_endless_lifetime_ends_with_the_numbers():
    forever = {"delegation_token_max_lifetime_ms": FOREVER, "delegation_token_expiry_time_ms": FOREVER}
    tokens = Tokens(**forever)
    token = tokens.create()
    assert token.expiry_timestamp_ms == token.max_timestamp_ms == FOREVER
    assert tokens.renew(token) == FOREVER - START_MS


def test_ids_are_those_of_kafkas_uuids():
    tokens = Tokens()
    ids = [tokens.create().token_id for _ in range(200)]
    assert len(set(ids)) == 200
    assert {len(each) for each in ids} == {22}
    assert not any(each.startswith("-") for each in ids)


def test_renewer_must_be_a_user():
    tokens = Tokens()
    group = KafkaPrincipal("Group", "g")
    assert code_of(lambda: tokens.create(renewers=[BOB, group])) is ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not tokens.kept


@pytest.mark.parametrize("secret", [None, ""])
def test_without_a_secret_there_are_no_tokens(secret):
    tokens = Tokens(secret)
    assert code_of(tokens.create) is DISABLED
    other = Tokens().create()
    assert tokens.renew(other) is tokens.expire(other) is DISABLED


@pytest.mark.parametrize(("level", "is_served"), [(13, False), (14, True)])
def test_metadata_version_must_have_tokens(level, is_served):
    tokens = Tokens(features={**DEFAULT_FEATURES, "metadata.version": level})
    if is_served:
        assert tokens.create()
    else:
        assert code_of(tokens.create) is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("who", [ALICE, BOB])
def test_owner_and_renewer_renew_up_to_the_end(who):
    tokens = Tokens()
    token = tokens.create(renewers=[BOB], max_lifetime_ms=2 * DAY_MS)
    assert tokens.renew(token, who, HOUR_MS) == HOUR_MS
    assert tokens.renew(token, who, 0) == DAY_MS
    tokens.clock.advance(DAY_MS)
    assert tokens.renew(token, who, FOREVER) == 2 * DAY_MS
    assert tokens.kept[token.token_id].expiry_timestamp_ms == START_MS + 2 * DAY_MS


@pytest.mark.parametrize(("period_ms", "ends_ms"), [(0, 0), (HOUR_MS, HOUR_MS), (FOREVER, WEEK_MS)])
def test_token_can_end_sooner_or_later(period_ms, ends_ms):
    tokens = Tokens()
    token = tokens.create()
    assert tokens.expire(token, ALICE, period_ms) == ends_ms
    assert tokens.kept[token.token_id].expiry_timestamp_ms == START_MS + ends_ms


def test_negative_period_removes_the_token_at_once():
    tokens = Tokens()
    token = tokens.create()
    tokens.clock.advance(WEEK_MS + 1)
    assert tokens.expire(token) == WEEK_MS + 1
    assert not tokens.kept
    assert tokens.expire(token) is tokens.renew(token) is NOT_FOUND


def test_others_are_refused():
    tokens = Tokens()
    token = tokens.create(renewers=[BOB])
    assert tokens.renew(token, CAROL) is tokens.expire(token, CAROL) is MISMATCH
    # Who has asked for a token of somebody else has no right to it.
    other = tokens.create(owner=CAROL)
    assert tokens.renew(other, ALICE) is MISMATCH
    assert tokens.renew(other, CAROL) == DAY_MS


@pytest.mark.parametrize(("age_ms", "is_expired"), [(4_999, False), (5_000, False), (5_001, True)])
def test_expired_token_cannot_be_renewed(age_ms, is_expired):
    tokens = Tokens()
    token = tokens.create(max_lifetime_ms=5_000)
    tokens.clock.advance(age_ms)
    expected = EXPIRED if is_expired else 5_000
    assert tokens.renew(token) == tokens.expire(token, period_ms=HOUR_MS) == expected
    # That it has expired is told to everybody who renews, but not to everybody who expires.
    assert tokens.renew(token, CAROL) is (EXPIRED if is_expired else MISMATCH)
    assert tokens.expire(token, CAROL, HOUR_MS) is MISMATCH


@pytest.mark.parametrize("lifetime_ms", [HOUR_MS - 1, HOUR_MS])
def test_expired_tokens_are_swept_every_hour(lifetime_ms):
    tokens = Tokens()
    tokens.create(max_lifetime_ms=lifetime_ms)
    kept = tokens.create()
    tokens.pass_ms(HOUR_MS - 1)
    assert len(tokens.kept) == 2
    tokens.pass_ms(1)
    assert len(tokens.kept) == (1 if lifetime_ms < HOUR_MS else 2)
    tokens.pass_ms(HOUR_MS)
    assert list(tokens.kept) == [kept.token_id]


def test_reset_removes_tokens():
    tokens = Tokens()
    tokens.create()
    tokens.controller.reset()
    assert not tokens.kept
