import pytest

from broker_sim.metadata.topic_name import invalid_topic_name, is_internal_topic, unify_collision_chars


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "-"])
def test_valid_name_is_accepted(name):
    assert invalid_topic_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_invalid_name_is_rejected_with_kafkas_message(name, reason):
    assert invalid_topic_name(name) == f"Topic name is invalid: {reason}"


def test_names_with_dots_and_with_underscores_collide():
    assert unify_collision_chars("a.b_c") == unify_collision_chars("a_b.c")
    assert unify_collision_chars("ab") != unify_collision_chars("a.b")


def test_coordinator_topics_are_internal():
    assert is_internal_topic("__consumer_offsets")
    assert is_internal_topic("__transaction_state")
    assert not is_internal_topic("__mine")
