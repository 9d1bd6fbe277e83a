"""The archive of Spark's classes: written whole once, then read; a cache that cannot be written does without."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: make setup-spark")
pytestmark = pytest.mark.spark

from broker_sim_integration.pipeline.spark.class_archive import (  # noqa: E402 - needs pyspark
    READ,
    SILENT,
    WRITE,
    archive_path,
    class_archive,
)

JAVA = 'openjdk version "17.0.15"'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def play_jvm(options):
    """Write what a JVM with these options would at its end."""
    silent, option = options
    assert silent == SILENT
    Path(option.removeprefix(WRITE)).write_text("classes")


def test_archive_is_written_once_and_read_from_then_on(cache):
    with class_archive(JAVA, write=True) as options:
        assert not archive_path(JAVA).exists()
        play_jvm(options)
    assert archive_path(JAVA).read_text() == "classes"
    for write in (True, False):
        with class_archive(JAVA, write=write) as options:
            assert options == (SILENT, f"{READ}{archive_path(JAVA)}")
    assert list(archive_path(JAVA).parent.iterdir()) == [archive_path(JAVA)]


def test_without_an_archive_a_session_that_does_not_write_one_has_no_option(cache):
    with class_archive(JAVA, write=False) as options:
        assert options == ()


def test_run_that_fails_leaves_no_archive(cache):
    archive = class_archive(JAVA, write=True)
    play_jvm(archive.__enter__())
    assert not archive.__exit__(KeyError, KeyError("a job failed"), None)
    assert list(archive_path(JAVA).parent.iterdir()) == []


def test_cache_that_cannot_be_written_does_without(cache):
    (cache / "broker-sim").write_text("no directory")
    with class_archive(JAVA, write=True) as options:
        assert options == ()


def test_another_java_and_another_spark_have_another_archive(cache, monkeypatch):
    paths = {archive_path(JAVA), archive_path('openjdk version "21.0.4"')}
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert len(paths | {archive_path(JAVA)}) == 3
