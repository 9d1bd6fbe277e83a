"""The topics in subscriptions of consumers."""

from broker_sim.group.classic.classic_group import subscribed_topics
from broker_sim.protocol.codec import encode
from broker_sim.protocol.messages import ConsumerProtocolSubscription


def subscription(*topics, version=3):
    message = ConsumerProtocolSubscription(topics=list(topics))
    return version.to_bytes(2, "big") + b"".join(encode(message, min(version, 3)))


def test_topics_of_all_members_count():
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == {"a", "b", "c"}


def test_versions_are_read_as_their_common_beginning():
    assert subscribed_topics([subscription("a", version=0), subscription("b", version=9)]) == {"a", "b"}


def test_what_is_no_subscription_says_nothing():
    assert subscribed_topics([subscription("a"), b"x"]) is None
    assert subscribed_topics([b"\0\0\0\0\0\7"]) is None


def test_no_members_want_no_topics():
    assert subscribed_topics([]) == frozenset()
