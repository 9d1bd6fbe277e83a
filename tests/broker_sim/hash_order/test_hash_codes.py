"""Hash codes are those of Java; the expected ones were printed by it."""

import pytest

from broker_sim.hash_order.hash_codes import java_hash_code, string_hash, topic_id_partition_hash, uuid_hash

TOPIC_ID = bytes.fromhex("9283d840870f9458b39bb93a0018cb51")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("g1", 3242),
        ("my-group", 2388469534),
        ("é", 233),
        ("\U0001f600", 1772899),
        ("topic-1", -1139260653 & 0xFFFFFFFF),
    ],
)
def test_string_hash_is_javas(text, code):
    assert java_hash_code(text) == code
    assert string_hash(text) == code


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 300])
def test_string_hash_follows_its_recurrence(size):
    text = "".join(chr(0x61 + index * 997 % 20_000) for index in range(size))
    code = 0
    for unit in text:
        code = (31 * code + ord(unit)) & 0xFFFFFFFF
    assert java_hash_code(text) == code


def test_uuid_hash_is_kafkas():
    assert uuid_hash(TOPIC_ID) == 2786016883


@pytest.mark.parametrize(("topic", "code"), [(None, 467179468), ("topic-1", 3622886111)])
def test_topic_id_partition_hash_is_kafkas(topic, code):
    assert topic_id_partition_hash(TOPIC_ID, 3, topic) == code
