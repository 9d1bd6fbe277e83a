"""The topics in subscriptions of consumers."""

from broker_sim.group.classic.classic_group import subscribed_topics
from broker_sim.protocol.codec import encode
from broker_sim.protocol.messages import ConsumerProtocolSubscription


def subscription(*topics, version=3):
    message = ConsumerProtocolSubscription(topics=list(topics))
    return version.to_bytes(2, "big") + b"".join(encode(message, min(version, 3)))


def test_topics_of_all_members_are_combined():
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == {"a", "b", "c"}


def test_all_versions_are_decoded_as_version_0():
    assert subscribed_topics([subscription("a", version=0), subscription("b", version=9)]) == {"a", "b"}


def test_invalid_subscription_returns_none():
    assert subscribed_topics([subscription("a"), b"x"]) is None
    assert subscribed_topics([b"\0\0\0\0\0\7"]) is None


def test_group_without_members_has_no_topics():
    assert subscribed_topics([]) == frozenset()
