"""SyncGroup in all versions."""

import pytest

from broker_sim.errors import ErrorCode

GROUP = "g"

NAMED = {"protocol_type": "consumer", "protocol_name": "range"}


@pytest.mark.parametrize("version", range(6))
def test_every_version_brings_the_assignment(user, version):
    member_id = user.joined().member_id
    request = user.sync(member_id, 1, [(member_id, b"all")], **NAMED)
    response = user.ask(request, version, user.leader(GROUP))
    assert (response.error_code, response.assignment) == (0, b"all")
    named = (response.protocol_type, response.protocol_name)
    assert named == (("consumer", "range") if version >= 5 else (None, None))


@pytest.mark.parametrize("missing", NAMED)
def test_version_5_must_name_the_protocol_before_anything_else_counts(user, missing):
    request = user.sync("stranger", **{**NAMED, missing: None})
    for broker in (1, 2, 3):
        response = user.ask(request, 5, broker)
        assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_errors(user):
    leader = user.leader(GROUP)
    member_id = user.stable_member()
    for request, broker, error in (
        (user.sync("stranger"), leader, ErrorCode.UNKNOWN_MEMBER_ID),
        (user.sync(member_id, 2), leader, ErrorCode.ILLEGAL_GENERATION),
        (user.sync(member_id), user.another(), ErrorCode.NOT_COORDINATOR),
        (user.sync(member_id, group_id=""), leader, ErrorCode.INVALID_GROUP_ID),
    ):
        response = user.ask(request, 3, broker)
        assert (response.error_code, response.assignment) == (error, b"")
