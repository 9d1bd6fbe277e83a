"""A cluster that is opened again on its directory."""

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim import Cluster, ConfigError
from broker_sim.cluster.nodes.data_directory import DataDirectory
from broker_sim.log import LogManager
from broker_sim.metadata import MetadataImage

SHORT_SESSION = {"broker.session.timeout.ms": 500, "broker.heartbeat.interval.ms": 100}
"""A broker that starts again serves when its old session has ended."""


def topics_of(cluster):
    return {topic.name: len(topic.partitions) for topic in cluster.status().topics}


def test_cluster_is_found_again_with_fewer_brokers(tmp_path):
    with Cluster(brokers=2, topics=["kept:3:1"], data_dir=tmp_path) as cluster:
        cluster.create_topic("other", partitions=1)
        before = topics_of(cluster)
    with Cluster(brokers=1, topics=["kept:3:1", "new"], data_dir=str(tmp_path)) as cluster:
        assert topics_of(cluster) == {**before, "new": 1}


def test_broker_that_is_killed_and_started_again_serves(tmp_path):
    with Cluster(2, topics=["t:1:2"], data_dir=tmp_path, configs=SHORT_SESSION) as cluster:
        cluster.stop(1)
        cluster.start(1)
        cluster.wait_until_in_sync()
        assert topics_of(cluster) == {"t": 1}


def test_logs_are_in_several_directories_and_are_found_again(tmp_path):
    options = {"data_dir": tmp_path, "configs": {"log.dirs": "/a,/b", **SHORT_SESSION}}
    with Cluster(1, topics=["t:3:1"], **options) as cluster:
        cluster.kill(1)
        cluster.start(1)
        cluster.wait_until_in_sync()
    logs = [sorted(path.name for path in tmp_path.glob(f"{name}/t-*")) for name in ("broker-1", "broker-1-2")]
    assert logs == [["t-0", "t-2"], ["t-1"]]
    with Cluster(1, **options) as cluster:
        assert topics_of(cluster) == {"t": 3}


def test_deleted_topic_goes_after_its_delay(tmp_path, monkeypatch):
    def called(owner, name):
        function, event = getattr(owner, name), threading.Event()

        def call(path, *args):
            result = function(path, *args)
            if Path(path).name.startswith("t-0"):
                event.set()
            return result

        monkeypatch.setattr(owner, name, call)
        return event

    renamed, deleted = called(Path, "rename"), called(shutil, "rmtree")
    with Cluster(brokers=1, topics=["t"], data_dir=tmp_path) as cluster:
        cluster.delete_topic("t")
        assert renamed.wait(30)
    (directory,) = tmp_path.glob("broker-1/t-0*")
    assert directory.name.endswith("-delete")
    assert not deleted.is_set()
    at_once = {"log.segment.delete.delay.ms": 0}
    with Cluster(brokers=1, data_dir=tmp_path, configs=at_once):
        assert deleted.wait(30)
    assert not directory.exists()


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
def test_invalid_path_is_rejected(wrong):
    with pytest.raises(ConfigError, match="data_dir must be the path of a directory"):
        Cluster(data_dir=wrong)


def test_started_broker_reads_its_files_as_they_are_now(tmp_path):
    with Cluster(brokers=1, topics=["t"], data_dir=tmp_path) as cluster:
        for value in ("kept", "torn"):
            cluster.produce("t", value)
        cluster.kill(1)
        (path,) = tmp_path.glob("broker-1/t-0/*.log")
        path.write_bytes(path.read_bytes()[:-3])
        cluster.start(1, end_session=True)
        assert [record.value for record in cluster.records("t")] == [b"kept"]
        assert cluster.produce("t", "next").offset == 1


def test_broker_does_not_start_on_the_directory_of_another_one(tmp_path):
    with Cluster(2, topics=["t:1:2"], data_dir=tmp_path, configs=SHORT_SESSION) as cluster:
        cluster.produce("t", "kept")
        cluster.stop(2)
        path = tmp_path / "broker-2" / "meta.properties"
        right = path.read_text()
        path.write_text(right.replace("node.id=2", "node.id=7"))
        with pytest.raises(ConfigError, match=r"has node\.id=7, but expected is node\.id=2"):
            cluster.start(2)
        assert cluster.status().broker(2).state == "dead"
        path.write_text(right)
        cluster.start(2)
        cluster.wait_until_in_sync()
        assert len(cluster.records("t")) == 1


@pytest.mark.parametrize("name", ["meta.properties", "__cluster_metadata-0"])
def test_log_directory_of_a_kafka_broker_is_refused_and_stays_as_it_is(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match=f"log directory of a Kafka broker \\(it contains {name}\\)"):
        DataDirectory(tmp_path).open()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_directory_with_logs_of_a_broker_is_refused_and_stays_as_it_is(tmp_path):
    log = tmp_path / "t-0"
    log.mkdir()
    (log / "00000000000000000000.log").touch()
    with pytest.raises(ConfigError, match="log directory of a Kafka broker \\(it contains t-0\\)"):
        DataDirectory(tmp_path).open()
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]


def test_unreadable_directory_of_another_user_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "backup-1").mkdir()
    exists = Path.exists

    def refuse(path):
        if path.parent.name == "backup-1":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuse)
    with Cluster(brokers=1, topics=["t"], data_dir=tmp_path) as cluster:
        assert topics_of(cluster) == {"t": 1}
    assert (tmp_path / "backup-1").is_dir()


def test_first_start_that_was_killed_before_any_of_its_files_is_begun_again(tmp_path, monkeypatch):
    data, killed = tmp_path / "data", []

    def copying(function):
        def call(path, *args, **options):
            if str(path).startswith(str(data)) and data.exists():
                killed.append(shutil.copytree(data, tmp_path / f"killed-{len(killed)}"))
            return function(path, *args, **options)

        return call

    with monkeypatch.context() as patches:
        for owner, name in ((os, "open"), (Path, "mkdir"), (Path, "write_bytes"), (Path, "replace"), (Path, "rename")):
            patches.setattr(owner, name, copying(getattr(owner, name)))
        with Cluster(brokers=1, data_dir=data):
            pass
    assert [name.name for name in killed[-1].glob("broker-1/meta.properties")]
    for copy in killed:
        with Cluster(brokers=1, data_dir=copy):
            pass


def test_directory_is_whole_again_only_when_the_logs_were_looked_at(tmp_path):
    directory = DataDirectory(tmp_path)
    directory.open()
    directory.begin(MetadataImage(0, "cluster"))
    directory.open_logs({1: 1}, "cluster")
    directory.metadata.close(is_whole=False)
    directory.close()
    for is_seen in (False, True):
        directory = DataDirectory(tmp_path)
        directory.open()
        assert not directory.restored.is_whole
        directory.begin(directory.restored.image)
        logs = LogManager(VirtualClock(), directories=directory.open_logs({1: 1}, "cluster")[1])
        if is_seen:
            directory.skip_known_producer_ids(1, logs)
        directory.close()
    assert DataDirectory(tmp_path).metadata.load().is_whole


def test_directory_of_brokers_without_their_metadata_names_the_missing_file(tmp_path):
    directory = DataDirectory(tmp_path)
    directory.open()
    directory.open_logs({1: 1}, "cluster")
    directory.close()
    with pytest.raises(ConfigError, match=r"controller\.metadata is missing, but there is broker-1"):
        DataDirectory(tmp_path).open()


@pytest.mark.parametrize("step", ["open", "open_logs", "begin"])
def test_full_disk_at_the_start_is_an_error_with_path_and_remedy(tmp_path, monkeypatch, step):
    directory = DataDirectory(tmp_path / "data")
    steps = {
        "open": directory.open,
        "open_logs": lambda: directory.open_logs({1: 1}, "cluster"),
        "begin": lambda: directory.begin(MetadataImage(0, "cluster")),
    }
    for name, do in steps.items():
        if name == step:
            break
        do()

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OSError, match="No space left on device; free some space there") as told:
        steps[step]()
    assert told.value.filename == str(tmp_path / "data")
    directory.close()
