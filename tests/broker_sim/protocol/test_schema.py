import keyword

import pytest

from broker_sim.protocol.schema import FIXED_FORMATS, Versions, load_message, message_names, parse_message, snake_case


@pytest.mark.parametrize(("text", "first", "last"), [("3", 3, 3), ("3-5", 3, 5), ("3+", 3, 32767), ("0-0", 0, 0)])
def test_versions_include_both_ends(text, first, last):
    versions = Versions.parse(text)
    assert versions == Versions(first, last)
    assert first in versions
    assert last in versions
    assert first - 1 not in versions
    assert last + 1 not in versions


@pytest.mark.parametrize("text", ["none", "", None])
def test_none_means_no_version(text):
    versions = Versions.parse(text)
    assert not versions
    assert 0 not in versions
    assert -1 not in versions


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TimeoutMs", "timeout_ms"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("Enable2Pc", "enable2_pc"),
        ("ISRNodes", "isr_nodes"),
        ("Name", "name"),
    ],
)
def test_names_become_snake_case(name, expected):
    assert snake_case(name) == expected


def test_every_schema_is_valid():
    for name in message_names():
        spec = load_message(name)
        assert spec.name == name
        for struct in (spec.root, *spec.structs.values()):
            names = [field.name for field in struct.fields]
            assert len(set(names)) == len(names)
            assert not any(map(keyword.iskeyword, names))
            for field in struct.fields:
                known = {*FIXED_FORMATS, "string", "bytes", "records", "struct"}
                assert field.type in known, (name, field.name)
                assert (field.type == "struct") == (field.struct is not None)


def test_every_request_has_its_response():
    names = {"request": set(), "response": set()}
    for name in message_names():
        kind = load_message(name).kind
        if kind in names:
            names[kind].add(name.removesuffix(kind.capitalize()))
    assert names["request"] == names["response"] != set()


def test_defaults_are_parsed_from_the_notation_of_kafka():
    def default(field_type, **facts):
        field = {"name": "F", "type": field_type, "versions": "0+", **facts}
        definition = {"name": "M", "type": "data", "validVersions": "0", "fields": [field]}
        return parse_message(definition).root.fields[0].default

    assert default("int32", default="0x7fffffff") == 0x7FFFFFFF
    assert default("int64", default=-1) == -1
    assert default("int8") == 0
    assert default("bool", default="true") is True
    assert default("bool", default=False) is False
    assert default("string") == ""
    assert default("string", default="null") is None
    assert default("bytes") == b""
    assert default("records") is None
    assert default("uuid") == bytes(16)
    assert default("float64") == 0.0
    assert default("[]int32") == ()
    assert default("[]int32", default="null") is None


def test_tagged_fields_are_in_the_order_of_their_tags():
    tagged = [
        {"name": name, "type": "int8", "versions": "1+", "taggedVersions": "1+", "tag": tag}
        for name, tag in (("B", 1), ("A", 0))
    ]
    definition = {"name": "M", "type": "data", "validVersions": "0-1", "fields": tagged}
    root = parse_message(definition).root
    assert [field.name for field in root.tagged_in(1)] == ["a", "b"]
    assert root.fields_in(1) == []
    assert len(root.absent_in(0)) == 2
