"""Tests of the coordinator keys of share partitions."""

import pytest

from broker_sim.share.share_state import SharePartitionKey

TOPIC_ID = bytes(range(240, 256))
TEXT = "8PHy8_T19vf4-fr7_P3-_w"


def test_coordinator_key_has_kafkas_format_and_can_be_parsed():
    key = SharePartitionKey("g", TOPIC_ID, 3)
    assert key.coordinator_key() == f"g:{TEXT}:3"
    assert SharePartitionKey.of_coordinator_key(key.coordinator_key()) == key


@pytest.mark.parametrize(
    ("text", "group_id", "partition"),
    [(f"a:b:{TEXT}:0", "a:b", 0), (f" g :{TEXT}:+7", " g ", 7), (f"g:{TEXT}:-1", "g", -1), (f"g:{TEXT}:1:", "g", 1)],
)
def test_key_is_parsed_from_its_end(text, group_id, partition):
    assert SharePartitionKey.of_coordinator_key(text) == (group_id, TOPIC_ID, partition)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "g",
        f"g:{TEXT}",
        f":{TEXT}:0",
        f" :{TEXT}:0",
        f"g:{TEXT[1:]}:0",
        f"g:{TEXT}AA:0",
        f"g:{TEXT[:-1]}!:0",
        f"g:{TEXT}:x",
        f"g:{TEXT}:1_0",
        f"g:{TEXT}:2147483648",
    ],
)
def test_invalid_keys_are_rejected(text):
    with pytest.raises(ValueError, match=r"\S"):
        SharePartitionKey.of_coordinator_key(text)
