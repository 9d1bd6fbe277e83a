"""The command: jobs one after the other, errors as one line, clusters and archives."""

import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from broker_sim_integration.pipeline.cli import main
from click.testing import CliRunner

from broker_sim.cluster.cluster import Cluster

SPARK = "'broker-sim-compare[spark]'"
SPECIFICATION = {"request_timeout_ms": [500, 30_000], "failures_per_minute": [6.0], "duration_ms": [1_000]}
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SMALL = [
    *("--conf", "spark.driver.memory=512m"),
    *("--conf", f"spark.driver.extraJavaOptions={QUICK_JVM}"),
    *("--conf", "spark.sql.adaptive.coalescePartitions.initialPartitionNum=2"),
]
"""A JVM that runs for seconds is faster without compiler and collector threads."""
EXECUTOR = ["--conf", "spark.executor.memory=500m"]


@pytest.fixture
def pipeline():
    """Return a function that runs the command in a process of its own."""

    def run(*arguments, program=("-m", "broker_sim_integration.pipeline"), cwd=None, **environment):
        return subprocess.run(
            [sys.executable, *program, *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )

    return run


@pytest.mark.parametrize(
    ("module", "package", "remedy", "arguments"),
    [
        ("cli", "pyspark", SPARK, ["ingest", "--input", "x", "--output", "y"]),
        ("demo", "confluent_kafka", "broker-sim-compare", []),
        ("demo", "pyspark", SPARK, []),
    ],
)
def test_without_a_package_there_is_one_line(pipeline, module, package, remedy, arguments):
    program = (
        f"import sys; sys.modules[{package!r}] = None;from broker_sim_integration.pipeline.{module} import main; main()"
    )
    result = pipeline(*arguments, program=("-c", program))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"Error: {package} is not installed: pip install {remedy}\n"


def test_jobs_but_chaos_do_not_import_the_simulator():
    program = (
        "import sys; from broker_sim_integration.pipeline.cli import main; main.get_command(None, 'all');"
        "assert 'broker_sim.broker' not in sys.modules; main.get_command(None, 'chaos');"
        "assert 'broker_sim.broker' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.spark
def test_without_java_there_is_one_line(require_spark, pipeline, tmp_path):
    result = pipeline("ingest", "--input", "x", "--output", tmp_path, JAVA_HOME=str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith("Error: Spark needs Java and JAVA_HOME=")
    assert result.stderr.count("\n") == 1


def test_a_bad_conf_is_named(tmp_path):
    result = CliRunner().invoke(main, ["ingest", "--input", "x", "--output", str(tmp_path), "--conf", "spark.x"])
    assert result.exit_code == 2
    assert "spark.x: write key=value" in result.output


@pytest.mark.spark
def test_error_of_a_missing_table_names_the_remedy(require_spark, pipeline, tmp_path):
    """The session has all the defaults of the command."""
    result = pipeline("lifecycle", "--input", tmp_path, "--output", tmp_path, SPARK_SUBMIT_OPTS=QUICK_JVM)
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: no table events in {tmp_path}, or it is empty: run the job that writes")
    assert result.stderr.count("\n") == 1


@pytest.mark.soak(part="spark")
@pytest.mark.spark
def test_all_runs_every_job_in_one_session(require_spark, pipeline, life, observation, write_lines, tmp_path):
    events = [event for number in range(4) for event in life(number, 1_000, 1_500 + number)]
    seen = [observation(side=side) for side in ("sim", "kafka")]
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(SPECIFICATION))
    trace = write_lines(tmp_path / "trace.jsonl", [*events, *seen])
    result = pipeline(
        "all", "--input", trace, "--output", tmp_path / "out", "--bucket-ms", 100,
        "--sweep", settings, XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert (
        result.stderr
        == "If it succeeds, this run archives Spark's classes at its end, so that later sessions start faster.\n"
    )
    done = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert list(done) == [
        "ingest", "lifecycle", "latency", "occupancy", "parity", "sweep", "report", "all"
    ]  # fmt: skip
    assert done["sweep"].startswith("6 runs of 2 settings")
    assert done["lifecycle"].startswith("4 lifecycles, 0 of them broken (")
    assert "buckets of 100 ms" in done["occupancy"]
    assert all(re.search(r"\d s\)?$", line) for line in done.values())
    assert (tmp_path / "out" / "report.html").exists()
    assert [path.suffix for path in (tmp_path / "cache/broker-sim").iterdir()] == [".jsa"]


@pytest.mark.soak(part="spark")
@pytest.mark.spark
def test_each_job_is_a_command(spark, life, observation, write_lines, tmp_path, monkeypatch):
    """The session is that of all tests, for a JVM for each command would take minutes."""
    from broker_sim_integration.pipeline.spark import session

    opened = []

    @contextmanager
    def spark_session(name, **options):
        opened.append((name, options["master"], options["conf"], options["quiet"]))
        yield spark

    monkeypatch.setattr(session, "spark_session", spark_session)
    events = [event for number in range(4) for event in life(number, 1_000, 1_500 + number)]
    seen = [observation(side=side) for side in ("sim", "kafka")]
    trace = write_lines(tmp_path / "trace.jsonl", [*events, *seen])
    out = str(tmp_path / "tables")
    told = {
        "ingest": "14 lines: 12 new events, 2 new observations, 0 quarantined, 0 known already",
        "lifecycle": "4 lifecycles, 0 of them broken",
        "latency": "2 groups",
        "occupancy": "4 buckets of 100 ms in 2 series",
        "parity": "1 of 1 steps agree",
        "report": f"{tmp_path}/report.html with ",
    }
    for job, answer in told.items():
        arguments = [job, "--input", trace if job == "ingest" else out, "--master", "local[7]"]
        arguments += ["--output", f"{tmp_path}/report.html" if job == "report" else out]
        arguments += ["--bucket-ms", "100"] if job == "occupancy" else ["--conf", "a=b=c"]
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(f"{job}: {answer}"), result.stdout
    jobs, masters, confs, quiet = map(list, zip(*opened, strict=True))
    assert jobs == [f"broker-sim {job}" for job in told]
    assert set(masters) == {"local[7]"}
    assert confs == [{} if job == "occupancy" else {"a": "b=c"} for job in told]
    assert set(quiet) == {True}


@pytest.mark.soak(part="spark")
@pytest.mark.spark
def test_a_job_of_all_that_fails_is_named(require_spark, pipeline, write_lines, tmp_path):
    trace = write_lines(tmp_path / "trace.jsonl", ["no event"])
    result = pipeline("all", "--input", trace, "--output", tmp_path / "out", "--master", "local[1]", *SMALL)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "lifecycle: "
    assert result.stderr.startswith("Error: no table events in ")
    assert result.stderr.count("\n") == 1


@pytest.mark.soak(part="spark")
@pytest.mark.spark
def test_an_output_that_cannot_be_written_is_one_line(require_spark, pipeline, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    output = tmp_path / "file" / "tables"
    result = pipeline("ingest", "--input", tmp_path / "file", "--output", output, *SMALL)
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: cannot write to {output}: ")
    assert result.stderr.count("\n") == 1


@pytest.fixture
def fetches_nothing(tmp_path):
    """Options for a Spark that has fetched nothing yet, from a repository that does not exist."""
    settings = tmp_path / "ivysettings.xml"
    with socket.socket() as taken:
        # Bound and not listening, so that no other program gets the port meanwhile.
        taken.bind(("127.0.0.1", 0))
        settings.write_text(
            "<ivysettings><settings defaultResolver='nobody'/><resolvers>"
            f"<ibiblio name='nobody' root='http://127.0.0.1:{taken.getsockname()[1]}/'/>"
            "</resolvers></ivysettings>"
        )
        yield [*("--conf", f"spark.jars.ivy={tmp_path / 'ivy'}"), *("--conf", f"spark.jars.ivySettings={settings}")]


@pytest.mark.soak(part="spark")
@pytest.mark.spark
def test_a_connector_that_cannot_be_fetched_is_one_line(require_spark, pipeline, fetches_nothing, tmp_path):
    from broker_sim_integration.pipeline.spark.session import KAFKA_CONNECTOR

    stream = ["stream", "--input", "127.0.0.1:1", "--topic", "t", "--output", tmp_path]
    result = pipeline(*stream, *fetches_nothing, *SMALL)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: Spark cannot fetch {KAFKA_CONNECTOR}: download it with its dependencies and pass "
        "--conf spark.jars=FILE,...; --verbose shows what it tried\n"
    )
    verbose = pipeline(*stream, *fetches_nothing, *SMALL, "--verbose")
    assert verbose.returncode == 1
    assert "UNRESOLVED DEPENDENCIES" in verbose.stderr
    assert "Connection refused" in verbose.stderr
    assert "\tat org.apache.spark" in verbose.stderr
    remedy = verbose.stderr.splitlines()[-1]
    assert remedy.startswith("Error: Spark did not start; if ")
    assert KAFKA_CONNECTOR in remedy


@pytest.mark.soak(part="spark")
@pytest.mark.spark
@pytest.mark.clients
def test_local_maven_repository_without_jars_does_not_matter(require_spark, pipeline, tmp_path, monkeypatch):
    from broker_sim_integration.pipeline.spark.session import KAFKA_CONNECTOR

    group, name, version = KAFKA_CONNECTOR.split(":")
    directory = tmp_path / ".m2" / "repository" / group.replace(".", "/") / name / version
    directory.mkdir(parents=True)
    (directory / f"{name}-{version}.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion>"
        f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></project>"
    )
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Duser.home={tmp_path}")
    fetches_all = ["--conf", f"spark.jars.ivy={tmp_path / 'ivy'}"]
    stream = ["stream", "--topic", "absent", "--available-now", "--output", tmp_path, "--master", "local[1]"]
    with Cluster(brokers=1) as cluster:
        result = pipeline(*stream, "--input", cluster.bootstrap_servers, *fetches_all, *SMALL)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: unknown topic absent at ")


@pytest.mark.soak(part="spark")
@pytest.mark.spark
@pytest.mark.clients
def test_a_topic_that_is_not_there_is_one_line(require_spark, pipeline, tmp_path):
    with Cluster(brokers=1) as cluster:
        servers = cluster.bootstrap_servers
        result = pipeline(
            "stream", "--input", servers, "--topic", "absent", "--available-now",
            "--output", tmp_path, "--master", "local[1]", *SMALL,
        )  # fmt: skip
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: unknown topic absent at {servers}: start the cluster with "
        "--trace-topic absent, or pass its topic by --topic\n"
    )


@pytest.mark.spark
def test_spark_that_does_not_start_prints_its_own_messages(require_spark, pipeline, tmp_path):
    result = pipeline("lifecycle", "--input", tmp_path, "--output", tmp_path, "--conf", "spark.driver.memory=1k")
    assert result.returncode == 1
    assert "Too small maximum heap" in result.stderr
    assert result.stderr.splitlines()[-1] == (
        "Error: Spark did not start: its own messages are above; --conf changes its configuration"
    )


@pytest.mark.soak(part="spark")
@pytest.mark.spark
def test_unexpected_error_shows_the_output_of_spark(require_spark, pipeline, tmp_path):
    lines = tmp_path / "lines.jsonl"
    lines.write_text("{}\n")
    (tmp_path / "quarantine").write_text("no table")
    result = pipeline("ingest", "--input", lines, "--output", tmp_path, "--master", "local[1]", *SMALL)
    assert result.returncode == 1
    assert "Setting Spark log level" in result.stderr, "the output of Spark"
    assert "Traceback (most recent call last)" in result.stderr


def test_the_archive_runs_a_simulation_by_itself(tmp_path):
    result = CliRunner().invoke(main, ["archive", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    archive = tmp_path / "broker_sim.zip"
    assert {name.split("/")[0] for name in zipfile.ZipFile(archive).namelist()} == {
        "broker_sim",
        "broker_sim_integration",
        "broker_sim_purgatory",
    }
    code = (
        "import broker_sim_integration.pipeline.jobs.sweep_run as run;"
        "print(run.__file__, run.simulate(run.SweepSettings(duration_ms=1000)).requests)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    path, requests = done.stdout.split()
    assert path.startswith(str(archive))
    assert int(requests) > 0


def test_the_same_code_makes_the_same_archive(tmp_path):
    from broker_sim_integration.pipeline.spark.archive import write_archive

    first, _ = write_archive(tmp_path / "a")
    second, _ = write_archive(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.soak(part="spark")
@pytest.mark.spark
@pytest.mark.clients
def test_chaos_on_a_standalone_cluster_has_the_modules_of_the_test(standalone, pipeline, tmp_path):
    import pyarrow.parquet as pq

    from broker_sim.chaos.search import NamedTest, run_seed
    from broker_sim.chaos.settings import Settings

    tests = Path(__file__).parents[2] / "broker_sim" / "chaos"
    (tmp_path / "applications_of_a_user.py").write_bytes((tests / "applications.py").read_bytes())
    (tmp_path / "of_a_user.py").write_text("from applications_of_a_user import forget\n")
    out = tmp_path / "out"
    done = pipeline(
        *("chaos", "--test", "of_a_user:forget", "--seeds", 6, "--faults", "crash"),
        *("--examined", 1, "--output", out, "--master", standalone, *EXECUTOR, *SMALL),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("chaos: 6 seeds, "), done.stdout
    test = NamedTest("applications:forget", Settings(faults={"crash"}))
    sys.path.insert(0, str(tests))
    try:
        here = {(seed, run_seed(test, seed).invariant) for seed in range(6)}
    finally:
        sys.path.remove(str(tests))
    table = pq.read_table(out / "chaos", columns=["seed", "invariant"]).to_pylist()
    assert {(row["seed"], row["invariant"]) for row in table} == here


@pytest.mark.soak(part="spark")
@pytest.mark.spark
@pytest.mark.clients
def test_a_sweep_on_a_standalone_cluster_is_that_of_one_machine(spark, standalone, pipeline, tmp_path):
    from broker_sim_integration.pipeline.jobs.sweep import SweepPlan, grid, simulate_all

    specification = tmp_path / "spec.json"
    specification.write_text(json.dumps(SPECIFICATION))
    sweep = ["sweep", "--input", specification, "--repeats", 2, "--tasks", 4, *EXECUTOR, *SMALL]
    by_command = pipeline(*sweep, "--output", tmp_path / "a", "--master", standalone)
    assert by_command.returncode == 0, by_command.stderr
    assert by_command.stdout == "sweep: 4 runs of 2 settings\n"

    CliRunner().invoke(main, ["archive", "--output", str(tmp_path)])
    submit = Path(find_spec("pyspark").origin).parent / "bin" / "spark-submit"
    submitted = subprocess.run(
        [
            submit, "--master", standalone, "--executor-memory", "500m", "--driver-memory", "512m",
            "--py-files", tmp_path / "broker_sim.zip", tmp_path / "broker_sim_pipeline.py",
            *map(str, sweep[: -len(SMALL)]), "--output", str(tmp_path / "b"),
        ],
        env={
            **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(Path(find_spec("pyspark").origin).parent),
        },
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert submitted.returncode == 0, submitted.stderr[-2000:]
    expected = sorted(simulate_all(grid(spark, SweepPlan(SPECIFICATION, repeats=2)), 2).collect())
    codes = set()
    for directory in ("a", "b"):
        found = spark.read.parquet(str(tmp_path / directory / "sweep"))
        assert sorted(found.drop("code").collect()) == expected
        (row,) = found.select("code").distinct().collect()
        codes.add(row.code)
    assert len(codes) == 1, "the same code, sent along or submitted"


@pytest.mark.soak(part="spark")
@pytest.mark.spark
@pytest.mark.clients
def test_every_job_of_a_trace_runs_on_a_standalone_cluster(
    spark, standalone, pipeline, events_frame, life, observation, write_lines, tmp_path
):
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles
    from broker_sim_integration.pipeline.jobs.occupancy import occupancy
    from pyspark.testing import assertDataFrameEqual

    rows = [life(number, 1_000 * number, 1_000 * number + 40) for number in range(1, 31)]
    events = [event for operation in rows for event in operation]
    unusual = json.dumps(events[0] | {"colour": "green"})
    others = [observation(), observation(side="kafka"), "broken", unusual]
    trace = write_lines(tmp_path / "trace.jsonl", [*events, *others])
    done = pipeline(
        "all", "--input", trace, "--output", tmp_path / "out", "--master", standalone,
        *EXECUTOR, *SMALL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [line.partition(" (")[0] for line in done.stdout.splitlines()]
    assert said[0] == ("ingest: 94 lines: 90 new events, 2 new observations, 1 quarantined, 1 known already")
    assert said[1] == "lifecycle: 30 lifecycles, 0 of them broken"
    jobs = [line.partition(":")[0] for line in said]
    assert jobs == ["ingest", "lifecycle", "latency", "occupancy", "parity", "report", "all"]
    assert (tmp_path / "out" / "report.html").exists()
    levels = occupancy(lifecycles(events_frame(events)))
    assertDataFrameEqual(spark.read.parquet(str(tmp_path / "out" / "occupancy")), levels)
