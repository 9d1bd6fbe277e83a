"""Data directories that are read-only, from the start or from some moment on.

The file operations raise EROFS, as on a file system that was mounted read-only: for root, permissions do
not stop a write.
"""

import errno
import io
import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker_sim import ApiError, Cluster
from broker_sim.cli.run import command
from broker_sim.errors import ErrorCode
from broker_sim.runtime import system

TIMEOUT_S = 60
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
ADVICE = "Read-only file system; make the data directory writable for this process, or use another one"


class ReadOnly:
    """Refuses every change below a directory of the machine; everything can be read."""

    def __init__(self, monkeypatch, directory):
        self._monkeypatch = monkeypatch
        self._directory = str(directory)
        for name in ("write", "pwrite", "ftruncate", "mkdir", "unlink", "rename", "replace"):
            self._refuse(os, name)
        for module in (os, system._Files):  # what brokers took from `os` before
            self._refuse(module, "open", lambda flags, *_: flags & WRITING)
        self._refuse(io, "open", lambda mode="r", *_: set(mode) & set("wax+"))

    def _refuse(self, module, name, is_change=lambda *_: True):
        function = getattr(module, name)

        def call(target, *arguments, **named):
            path = self._path(target)
            if self._is_inside(path) and is_change(*arguments):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
            return function(target, *arguments, **named)

        self._monkeypatch.setattr(module, name, call)

    def _is_inside(self, path):
        return path == self._directory or path.startswith(f"{self._directory}{os.sep}")

    @staticmethod
    def _path(target):
        """Return the path of a file that is named, or of one that is open."""
        if not isinstance(target, int):
            return os.fspath(target)
        try:
            return str(Path("/proc/self/fd", str(target)).readlink())
        except OSError:  # it was closed meanwhile
            return ""


@pytest.fixture
def read_only():
    """Return a context manager: `with read_only(directory)`."""

    @contextmanager
    def during(directory):
        with pytest.MonkeyPatch.context() as monkeypatch:
            ReadOnly(monkeypatch, directory)
            yield

    return during


def lines_of(caplog, event):
    return [record.message for record in caplog.records if event in record.message]


def until(condition):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline


def refuse_one(cluster, topic):
    with pytest.raises(ApiError, match="Read-only file system") as caught:
        cluster.produce(topic, "refused")
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR


def test_read_only_directory_takes_its_partition_offline_and_others_live_on(tmp_path, caplog, read_only):
    directory = tmp_path / "broker-1" / "t-0"
    with Cluster(1, topics=["t", "other"], data_dir=tmp_path) as cluster:
        cluster.produce("t", "before")
        with read_only(directory):
            refuse_one(cluster, "t")
            until(lambda: cluster.partition("t").leader is None)
            cluster.produce("other", "lives on")
            assert len(cluster.records("other")) == 1
        (line,) = lines_of(caplog, "log_offline")
        assert f"directory='{directory}'" in line
        assert "why='Read-only file system'" in line
        cluster.kill(1)
        cluster.start(1, end_session=True)
        assert [record.value for record in cluster.records("t")] == [b"before"]
        cluster.produce("t", "after")


def test_brokers_with_other_directories_go_on(tmp_path, read_only):
    with Cluster(3, data_dir=tmp_path) as cluster:
        for topic in ("t", "idle"):
            cluster.create_topic(topic, assignments={0: [1, 2, 3]})
        cluster.produce("t", "before")
        cluster.wait_until_in_sync()
        with read_only(tmp_path / "broker-1"):
            refuse_one(cluster, "t")
            until(lambda: cluster.isr("t") == (2, 3))
            cluster.produce("t", "after")
            assert cluster.leader("idle") == 1
            assert cluster.status().broker(1).state == "running"
        cluster.kill(1)
        cluster.start(1, end_session=True)
        cluster.wait_until_in_sync()
        assert [record.value for record in cluster.records("t")] == [b"before", b"after"]


@pytest.fixture
def used(tmp_path):
    """A directory in which a cluster has left a record."""
    path = tmp_path / "data"
    with Cluster(1, topics=["t"], data_dir=path) as cluster:
        cluster.produce("t", "kept")
    return path


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("", ".lock"),
        ("broker-1", "broker-1/.lock"),
        ("broker-1/.kafka_cleanshutdown", "broker-1/.kafka_cleanshutdown"),
        ("controller.tmp", "controller.tmp"),
    ],
)
def test_start_on_read_only_directory_says_what_to_do(used, read_only, where, named):
    with (
        read_only(used / where),
        pytest.raises(OSError, match=f"{ADVICE}: '{used / named}'") as caught,
        Cluster(1, data_dir=used),
    ):
        pass
    assert caught.value.errno == errno.EROFS
    with Cluster(1, data_dir=used) as cluster:
        assert [record.value for record in cluster.records("t")] == [b"kept"]


def test_new_directory_on_read_only_disk_says_what_to_do(tmp_path, read_only):
    path = tmp_path / "new"
    with read_only(tmp_path), pytest.raises(OSError, match=f"{ADVICE}: '{path}'"), Cluster(1, data_dir=path):
        pass
    assert not path.exists()


def test_broker_that_is_started_on_read_only_directory_stays_dead(used, read_only):
    with Cluster(1, data_dir=used) as cluster:
        cluster.stop(1)
        with read_only(used / "broker-1"), pytest.raises(OSError, match=ADVICE):
            cluster.start(1)
        assert cluster.status().broker(1).state == "dead"
        cluster.start(1, end_session=True)
        assert [record.value for record in cluster.records("t")] == [b"kept"]


def test_command_says_it_in_one_line(used, read_only):
    with read_only(used):
        result = CliRunner().invoke(command, ["--brokers", "1", "--data-dir", str(used)])
    assert result.exit_code == 1
    assert result.output == f"Error: cannot write {used / '.lock'}: {ADVICE}\n"
