"""The page of what Kafka's newest release changes, and how its lines are made."""

import pytest

from broker_sim.protocol.release import find_release
from tools.release_changes import NEWER, OLDER, TARGET, changes, fields_of, page
from tools.update_releases import api_name


def test_lines_say_what_came_went_and_changed():
    before = {"a": "int", "b": "int", "c": "int"}
    after = {"a": "int", "b": "long", "d": "string"}
    assert list(changes(before, after)) == [
        "- `~` `b`: long; before: int\n",
        "- `-` `c`\n",
        "- `+` `d`: string\n",
    ]


def test_fields_are_named_by_their_path():
    inner = {"name": "Error", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null"}
    message = {"fields": [{"name": "Results", "type": "[]Result", "versions": "0+", "fields": [inner]}]}
    assert dict(fields_of("Answer", message)) == {
        "Answer.Results": "[]Result, versions 0+",
        "Answer.Results.Error": "string, versions 3+, null in 3+, default null",
    }


@pytest.mark.parametrize(
    ("key", "kafkas_name", "name"),
    [(1, "FETCH", "FETCH"), (56, "ALTER_ISR", "ALTER_PARTITION"), (9_999, "OF_NEXT_RELEASE", "OF_NEXT_RELEASE")],
)
def test_api_that_has_no_number_here_yet_has_its_name_in_kafka(key, kafkas_name, name):
    assert api_name(key, kafkas_name) == name


def test_page_has_the_changed_apis_and_features_of_the_table_of_releases():
    written = TARGET.read_text(encoding="utf-8")
    older, newer = (find_release(version.rpartition(".")[0]) for version in (OLDER, NEWER))
    for key, (lowest, highest) in newer.apis.items():
        line = f" `{key.name}`: versions {lowest} to {highest}"
        assert (line in written) is (older.apis.get(key) != (lowest, highest)), key.name
    for name, levels in newer.features.items():
        assert (f" `{name}`: levels" in written) is (older.features.get(name) != levels), name


@pytest.mark.soak(part="kafka_classes")
@pytest.mark.real_kafka
def test_page_is_what_the_jars_say():
    assert TARGET.read_text(encoding="utf-8") == page(OLDER, NEWER)
