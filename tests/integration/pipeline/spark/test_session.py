"""A missing requirement is one line with its remedy; defaults can be overridden."""

import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: make setup-spark")
pytestmark = pytest.mark.spark

from broker_sim_integration.pipeline.errors import PipelineError  # noqa: E402 - needs pyspark
from broker_sim_integration.pipeline.spark.session import (  # noqa: E402 - the same
    KAFKA_CONNECTOR,
    SMALL_BYTES,
    are_small,
    default_conf,
    ivy_settings,
    require_home,
    require_java,
    require_python,
)


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Return a function that makes a JAVA_HOME whose java prints this version."""

    def make(version):
        home = tmp_path / "jdk"
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))

    return make


def test_missing_java_names_the_package(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match="the PATH has none: install openjdk-17"):
        require_java()


def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=f"JAVA_HOME={tmp_path} has none"):
        require_java()


@pytest.mark.parametrize(
    ("version", "major"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2" x', 11), ('version "25"', 25)]
)
def test_a_java_that_spark_does_not_run_on_is_named(java, version, major):
    java(version)
    with pytest.raises(PipelineError, match=f"is Java {major}, Spark .* needs 17"):
        require_java()


@pytest.mark.parametrize("version", ['openjdk version "17.0.15"', 'openjdk version "21" 2023'])
def test_javas_that_spark_runs_on_pass(java, version):
    java(version)
    require_java()


def test_a_java_without_a_version_is_named(java):
    java("Segmentation fault")
    with pytest.raises(PipelineError, match="does not print its version"):
        require_java()


@pytest.mark.parametrize(
    ("jar", "trouble"),
    [("spark-core_2.13-3.5.1.jar", "is Spark 3.5.1"), ("nothing.jar", "is no Spark"), (None, "is no Spark")],
)
def test_spark_home_of_another_spark_is_named(jar, trouble, tmp_path, monkeypatch):
    if jar is not None:
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / jar).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=rf"{trouble}, and pyspark is .*: unset SPARK_HOME$"):
        require_home()


def test_spark_home_of_the_same_spark_passes(tmp_path, monkeypatch):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_2.13-{pyspark.__version__}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    require_home()


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        ("echo 2.7", "is Python 2.7"),
        (
            "echo 'ModuleNotFoundError: No module named pandas' >&2; exit 1",
            r"does not work \(ModuleNotFoundError: .*\)",
        ),
        (None, r"cannot be run \(No such file or directory\)"),
    ],
)
def test_pyspark_python_that_cannot_run_the_jobs_is_named(answer, trouble, tmp_path, monkeypatch):
    python = tmp_path / "python"
    if answer is not None:
        python.write_text(f"#!/bin/sh\n{answer}\n")
        python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    with pytest.raises(PipelineError, match=f"^PYSPARK_PYTHON={python} {trouble}, and the jobs need Python 3"):
        require_python()


@pytest.mark.parametrize("python", [None, sys.executable, f"{Path(sys.executable).parent}/../bin/python"])
def test_pyspark_python_of_the_same_packages_passes(python, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if python is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
    require_python()


@pytest.mark.parametrize(("mirror", "root"), [(None, None), ("file:///mirror?a=1&b=2", "file:///mirror?a=1&b=2")])
def test_connector_is_fetched_from_one_repository(mirror, root, monkeypatch):
    """There is one resolver and no local Maven repository, which may lack jars."""
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY", raising=False)
    if mirror is not None:
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", mirror)
    with ivy_settings() as path:
        settings = ET.parse(path).getroot()
    (resolver,) = settings.find("resolvers")
    assert resolver.get("name") == settings.find("settings").get("defaultResolver")
    assert resolver.get("root") == root


def test_the_connector_has_the_version_of_spark():
    assert KAFKA_CONNECTOR.endswith(f":{pyspark.__version__}")
    assert default_conf("local[2]", kafka=True)["spark.jars.packages"] == KAFKA_CONNECTOR
    assert "spark.jars.packages" not in default_conf("local[2]")


def test_only_a_driver_on_this_machine_is_bound_to_loopback():
    for master in ("local[*]", "spark://127.0.0.1:7077"):
        assert default_conf(master)["spark.driver.host"] == "127.0.0.1"
    for master in (None, "yarn", "spark://elsewhere:7077"):
        assert "spark.driver.host" not in default_conf(master)


def test_little_work_is_not_compiled_unless_configured():
    small, large = (default_conf("local[1]", small=each) for each in (True, False))
    assert small["spark.sql.codegen.wholeStage"] == small["spark.sql.adaptive.enabled"] == "false"
    assert "-XX:TieredStopAtLevel=1" in small["spark.driver.extraJavaOptions"]
    assert "spark.sql.codegen.wholeStage" not in large
    assert "spark.sql.codegen.wholeStage" not in default_conf("spark://elsewhere:7077", small=True)


def test_size_of_local_input_decides_whether_work_is_little(tmp_path):
    (tmp_path / "trace.jsonl").write_bytes(b"x" * 1_000)
    assert are_small([str(tmp_path / "trace.jsonl"), str(tmp_path)])
    with (tmp_path / "large").open("wb") as file:
        file.truncate(SMALL_BYTES)
    assert not are_small([str(tmp_path)])
    assert not are_small(["hdfs:///tables"])
    assert not are_small([str(tmp_path / "*.jsonl")])


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_collector_that_the_user_chose_is_the_only_one(variable, monkeypatch):
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    options = "spark.driver.extraJavaOptions"
    monkeypatch.setenv(variable, "-Xss2m -XX:-UseGCOverheadLimit")
    assert "-XX:+UseParallelGC" in default_conf("local[2]")[options].split()
    monkeypatch.setenv(variable, "-Xss2m -XX:+UseSerialGC")
    assert "-XX:+Use" not in default_conf("local[2]")[options]


def test_only_one_module_uses_the_driver_directly():
    pipeline = Path(find_spec("broker_sim_integration.pipeline").origin).parent
    found = {
        str(path.relative_to(pipeline))
        for path in pipeline.rglob("*.py")
        if any(word in path.read_text() for word in ("._jvm", "._jsc", ".sparkContext"))
    }
    assert found == {"spark/driver.py"}
