"""Names of groups and members in observations."""

import uuid

import pytest
from broker_sim_integration.scenarios.helpers.groups import named, partition_of


@pytest.mark.parametrize(
    ("group", "partitions", "partition"), [("hello", 50, 22), ("polygenelubricants", 50, 0), ("", 50, 0), ("a", 6, 1)]
)
def test_partition_of_a_group_follows_javas_hash(group, partitions, partition):
    assert partition_of(group, partitions) == partition


def test_random_parts_of_ids_are_replaced():
    assert named(f"client-{uuid.uuid4()}") == "client-<random>"
    assert named("q83fFsH3TvyXR-BJqkXL_w") == "<random>"


@pytest.mark.parametrize("text", ["", "member 1", "Group the group not found.", "range"])
def test_other_texts_stay(text):
    assert named(text) == text
