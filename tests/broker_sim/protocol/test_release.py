"""Claims about the table of Kafka's releases."""

import itertools
import warnings

import pytest

from broker_sim.errors import ConfigError
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.release import find_release, releases
from broker_sim.protocol.schema import load_message, message_names
from tools.update_schemas import OF_OLDER_RELEASES

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

NEWEST = "4.4"
CLIENT_APIS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.HEARTBEAT,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_CLUSTER,
)


def as_numbers(release):
    return tuple(map(int, release.split(".")))


def test_releases_go_from_2_1_to_the_one_that_is_mirrored_without_a_gap():
    numbers = [as_numbers(name) for name in releases()]
    assert numbers == [
        *((2, minor) for minor in range(1, 9)),
        *((3, minor) for minor in range(10)),
        *((4, minor) for minor in range(5)),
    ]


def test_unknown_release_is_one_line_that_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"^Unknown Kafka release '1\.9': must be one of 2\.1, "):
        find_release("1.9")


@pytest.mark.parametrize("name", [n for n in releases() if as_numbers(n) < (4, 0)])
def test_ranges_before_4_are_those_that_kafka_python_knows(name):
    theirs = BROKER_API_VERSIONS[as_numbers(name)]
    ours = find_release(name).apis
    for key in CLIENT_APIS:
        assert ours.get(key) == theirs.get(key), key.name


def test_newest_release_has_the_versions_of_the_schemas():
    specs = [load_message(name) for name in message_names()]
    ranges = {
        ApiKey(spec.api_key): (spec.versions.first, spec.versions.last - spec.latest_version_unstable)
        for spec in specs
        if spec.kind == "request" and "broker" in spec.listeners
    }
    apis = find_release(NEWEST).apis
    of_older_releases = {key for key in apis if key.api_name in OF_OLDER_RELEASES}
    assert all(ranges[key][0] == 0 < apis[key][0] for key in of_older_releases)
    ranges |= {key: (apis[key][0], ranges[key][1]) for key in of_older_releases}
    assert apis == {key: (first, last) for key, (first, last) in ranges.items() if first <= last}


def test_highest_version_never_falls_from_one_release_to_the_next():
    for older, newer in itertools.pairwise(releases().values()):
        for key in CLIENT_APIS:
            if key in older.apis:
                assert older.apis[key][1] <= newer.apis[key][1], (newer.name, key.name)


def test_features_come_with_kraft_and_a_default_that_is_supported():
    for name, release in releases().items():
        assert ("metadata.version" in release.features) is (as_numbers(name) >= (3, 3))
        for feature, levels in release.features.items():
            assert levels.default == 0 or levels.minimum <= levels.default <= levels.maximum
            assert (feature in release.finalized_features) is (levels.default > 0)


@pytest.mark.real_kafka
def test_newest_release_is_that_of_kafkas_own_classes(newest_kafka_class_files):
    from tools.update_releases import PATCH_RELEASES, read_facts

    facts = read_facts(f"{newest_kafka_class_files}/*", PATCH_RELEASES[-1])
    release = find_release(facts["release"])
    assert {key.name: list(range_) for key, range_ in release.apis.items()} == facts["apis"]
    assert {name: list(levels) for name, levels in release.features.items()} == facts["features"]
