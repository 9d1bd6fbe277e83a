"""Levels of features that a new cluster begins with."""

import asyncio

import pytest

from broker_sim import AsyncCluster, Cluster, ConfigError
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.protocol.messages import ApiVersionsRequest

OF_KAFKA_4_4 = {
    "metadata.version": 33,
    "transaction.version": 2,
    "group.version": 1,
    "eligible.leader.replicas.version": 1,
    "share.version": 2,
    "streams.version": 1,
}


def finalized(**options):
    """Return the levels that a client of a new cluster is told."""
    with VirtualCluster(1, **options) as cluster:
        pending = cluster.client().send(1, ApiVersionsRequest("test", "1"), 3)
        cluster.run_until(lambda: pending.done)
        return {each.name: each.max_version_level for each in pending.response.finalized_features}


def test_levels_are_those_of_the_release_unless_they_are_chosen():
    assert finalized() == OF_KAFKA_4_4
    assert finalized(features={"group.version": 0, "transaction.version": 1}) == {
        name: 1 if name == "transaction.version" else level
        for name, level in OF_KAFKA_4_4.items()
        if name != "group.version"
    }


def test_other_levels_are_as_old_as_the_metadata_version():
    assert finalized(features={"metadata.version": 19}) == {"metadata.version": 19}
    assert finalized(features={"metadata.version": 19, "group.version": 1}) == {
        "metadata.version": 19,
        "group.version": 1,
    }
    of_4_1 = finalized(features={"metadata.version": 28})
    newer = {"share.version", "streams.version"}
    assert of_4_1 == {name: level for name, level in OF_KAFKA_4_4.items() if name not in newer} | {
        "metadata.version": 28
    }


@pytest.mark.parametrize(
    ("release", "features", "message"),
    [
        (None, {"metadata.versoin": 19}, r"no feature 'metadata.versoin' \(did you mean metadata.version\?\)"),
        (None, {"kraft.version": 1}, "kraft.version of a new cluster is 0: leave it out"),
        (None, {"metadata.version": 34}, "Kafka 4.4 supports metadata.version 7-33, not 34"),
        (None, {"metadata.version": 6}, "Kafka 4.4 supports metadata.version 7-33, not 6"),
        (None, {"group.version": "1"}, "Kafka 4.4 supports group.version 0-1, not '1'"),
        (None, {"metadata.version": 22, "eligible.leader.replicas.version": 1}, "needs metadata.version 23 or newer"),
        ("4.3", {"metadata.version": 31}, "Kafka 4.3 supports metadata.version 7-30, not 31"),
        ("3.7", {"group.version": 1}, "Kafka 3.7 has no feature 'group.version': must be one of metadata.version"),
        ("3.2", {"metadata.version": 7}, "Kafka 3.2 has no feature 'metadata.version': it has none"),
    ],
)
def test_levels_that_the_release_does_not_have_are_refused(release, features, message):
    with pytest.raises(ConfigError, match=message):
        Cluster(1, as_version=release, features=features)


def test_directory_keeps_its_levels(tmp_path):
    async def levels(features):
        async with AsyncCluster(1, data_dir=tmp_path, features=features) as cluster:
            return dict(cluster.nodes.controller.image.features)

    old = {"metadata.version": 19}
    assert [asyncio.run(levels(features)) for features in (old, None, old)] == [old] * 3
    with pytest.raises(ConfigError, match=r"has metadata\.version 19, not 20: leave out features"):
        asyncio.run(levels({"metadata.version": 20}))


def test_reset_of_a_cluster_has_the_chosen_levels():
    with VirtualCluster(1, features={"metadata.version": 19}) as cluster:
        cluster.reset()
        assert dict(cluster.nodes.controller.image.features) == {"metadata.version": 19}
