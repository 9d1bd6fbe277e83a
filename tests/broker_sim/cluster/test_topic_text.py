"""Topics as people write them."""

import pytest

from broker_sim.cluster.text_forms import parse_topic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", ("orders", -1, -1, {})),
        ("orders:3", ("orders", 3, -1, {})),
        ("orders:3:2", ("orders", 3, 2, {})),
        ("orders::2", ("orders", -1, 2, {})),
        ("orders:-1:2", ("orders", -1, 2, {})),
        ("orders:a=b", ("orders", -1, -1, {"a": "b"})),
        ("orders:3:a=b", ("orders", 3, -1, {"a": "b"})),
        ("orders:3:2:a=b:c=d=e", ("orders", 3, 2, {"a": "b", "c": "d=e"})),
        ("orders:3:2:a=0:1,2:3:c=", ("orders", 3, 2, {"a": "0:1,2:3", "c": ""})),
    ],
)
def test_omitted_parts_of_a_topic_have_defaults(text, expected):
    assert parse_topic(text) == expected
