"""Tests of the selection of a protocol."""

import pytest

from broker_sim.group.classic.classic_group import choose_protocol
from broker_sim.group.classic.classic_member import ClassicMember, MemberProtocol


def member(*names):
    return ClassicMember(
        "member",
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=[MemberProtocol(name, b"") for name in names],
    )


def test_most_votes_win():
    members = [member("a", "b"), member("b", "a"), member("b", "a")]
    assert choose_protocol(members, {"a", "b"}) == "b"


def test_non_candidates_get_no_votes():
    assert choose_protocol([member("a", "b"), member("a", "b")], {"b"}) == "b"


@pytest.mark.parametrize(
    ("names", "winner"),  # seen on Kafka 4.3.1
    [
        (("range", "roundrobin"), "range"),
        (("sticky", "cooperative-sticky"), "sticky"),
        (("range", "cooperative-sticky"), "range"),
        (("roundrobin", "sticky"), "sticky"),
        (("a", "b"), "a"),
    ],
)
def test_ties_are_resolved_as_in_kafka(names, winner):
    for first in (names, names[::-1]):
        members = [member(*first), member(*first[::-1])]
        assert choose_protocol(members, set(names)) == winner
