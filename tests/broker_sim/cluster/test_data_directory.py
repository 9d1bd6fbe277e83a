"""A cluster that is opened again on its directory."""

import pytest

from broker_sim import Cluster, ConfigError


def topics_of(cluster):
    return {topic.name: len(topic.partitions) for topic in cluster.status().topics}


def test_cluster_is_found_again_with_fewer_brokers(tmp_path):
    with Cluster(brokers=2, topics=["kept:3:1"], data_dir=tmp_path) as cluster:
        cluster.create_topic("other", partitions=1)
        before = topics_of(cluster)
    with Cluster(brokers=1, topics=["kept:3:1", "new"], data_dir=str(tmp_path)) as cluster:
        assert topics_of(cluster) == {**before, "new": 1}


def test_broker_that_is_killed_and_started_again_serves(tmp_path):
    with Cluster(brokers=2, topics=["t:1:2"], data_dir=tmp_path) as cluster:
        cluster.stop(1)
        cluster.start(1)
        cluster.wait_until_in_sync()
        assert topics_of(cluster) == {"t": 1}


def test_directory_of_an_open_cluster_is_refused(tmp_path):
    with Cluster(brokers=1, data_dir=tmp_path):
        other = Cluster(brokers=1, data_dir=tmp_path)
        with pytest.raises(ConfigError, match="another process or cluster uses this directory"):
            other.open()
    with Cluster(brokers=1, data_dir=tmp_path):
        pass


@pytest.mark.parametrize("wrong", ["", 7, b"x"])
def test_what_is_no_path_is_refused(wrong):
    with pytest.raises(ConfigError, match="data_dir must be the path of a directory"):
        Cluster(data_dir=wrong)
