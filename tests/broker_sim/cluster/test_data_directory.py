"""A cluster that is opened again on its directory."""

import errno
import os
import threading

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


def test_metadata_is_written_once_the_disk_has_room_again(tmp_path, monkeypatch):
    is_full, written, write = threading.Event(), threading.Event(), os.write

    def write_unless_full(descriptor, content):
        if b'"version":' in content and is_full.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = write(descriptor, content)
        if b'"new"' in content:
            written.set()
        return count

    monkeypatch.setattr(os, "write", write_unless_full)
    file = tmp_path / "controller.metadata"
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        is_full.set()
        cluster.create_topic("new")
        cluster.produce("new", "value")
        assert b'"new"' not in file.read_bytes()
        is_full.clear()
        assert written.wait(30)  # by the next tick of the controller
        assert b'"new"' in file.read_bytes()
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        assert len(cluster.records("new")) == 1


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
