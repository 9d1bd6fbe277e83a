"""JoinGroup in all versions."""

import pytest

from broker_sim.errors import ErrorCode

GROUP = "g"

VERSIONS = range(10)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_joins(user, version):
    response = user.joined(version)
    assert response.generation_id == 1
    assert response.leader == response.member_id
    assert response.protocol_name == "range"
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert [(member.member_id, member.metadata) for member in response.members] == [(response.member_id, b"me")]


def test_version_0_has_the_session_timeout_as_rebalance_timeout(user):
    user.joined(0)
    (member,) = user.group().members.values()
    assert member.rebalance_timeout_ms == 10_000


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_have_no_protocol(user, version):
    response = user.ask(user.join("stranger"), version, user.leader(GROUP))
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.protocol_name == ("" if version < 7 else None)
    assert (response.generation_id, response.member_id) == (-1, "stranger")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_wrong_requests_are_refused_by_every_broker(user, options, error):
    for broker in (1, 2, 3):
        response = user.ask(user.join("me", **options), 9, broker)
        assert (response.error_code, response.member_id) == (error, "me")


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_bounds_of_the_session_timeout_are_allowed(user, session_ms):
    response = user.ask(user.join(session_timeout_ms=session_ms), 9, user.leader(GROUP))
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_another_broker_is_not_the_coordinator(user):
    response = user.ask(user.join(), 9, user.another())
    assert response.error_code == ErrorCode.NOT_COORDINATOR


def test_client_is_described_by_its_id_and_address(user):
    member_id = user.joined().member_id
    assert member_id.startswith(f"{user.client.host}-")
    member = user.group().members[member_id]
    assert member.client_id == user.client.host
    assert member.client_host.startswith("/")


def test_client_that_is_gone_while_its_join_is_parked_is_a_member_until_its_session_ends(user):
    # The broker does not read from a connection whose request is parked, so it does not notice.
    leader = user.leader(GROUP)
    gone = user.other()
    member_id = gone.ask(user.join(), 9, leader).member_id
    pending = gone.send(user.join(member_id), 9, leader)
    user.cluster.advance(100)
    gone.client.disconnect(leader)
    assert pending.disconnected
    response = user.ask(user.join(), 9, leader)
    response = user.ask(user.join(response.member_id), 9, leader)
    assert member_id in {member.member_id for member in response.members} or (response.leader == member_id)
    group = user.group()
    assert set(group.members) == {member_id, response.member_id}
    user.until(lambda: member_id not in group.members)


def test_connection_that_is_parked_serves_no_further_request(user):
    leader = user.leader(GROUP)
    member_id = user.ask(user.join(), 9, leader).member_id
    parked = user.send(user.join(member_id), 9, leader)
    behind = user.send(user.join("stranger"), 9, leader)
    user.cluster.run_until(lambda: behind.done)
    assert parked.received_ms <= behind.received_ms
    assert parked.elapsed_ms >= 3_000


def test_joins_and_sessions_are_in_their_purgatories(user):
    leader = user.leader(GROUP)
    member_id = user.ask(user.join(), 9, leader).member_id
    user.send(user.join(member_id), 9, leader)
    user.cluster.advance(10)
    parked = {
        purgatory.name: [([str(key) for key in each.keys], each.delay_ms) for each in purgatory.parked()]
        for purgatory in user.cluster.nodes.brokers[leader].purgatories
        if purgatory.name in {"Rebalance", "Heartbeat"}
    }
    assert parked["Rebalance"] == [([GROUP], 3_000)]
    assert parked["Heartbeat"] == [([f"{GROUP}-{member_id}"], 300_000)]
