"""The Spark session of a command: requirements, and defaults that users may change.

Missing Java, a wrong version or a missing Kafka connector is one line with its remedy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from pyspark import SparkConf, SparkContext
from pyspark import __version__ as pyspark_version
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.spark.class_archive import class_archive
from broker_sim_integration.pipeline.spark.java_output import KeptOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OLDEST_JAVA: Final = 17
NEWEST_JAVA: Final = 21
KAFKA_CONNECTOR: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark_version}"
"""The version of the connector must be that of Spark."""

COLLECTOR: Final = "-XX:+UseParallelGC"
CHOSEN_COLLECTOR: Final = re.compile(r"-XX:\+Use\w*GC\b")
OPTIONS_FOR_ANY_JAVA: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables whose options the driver's JVM also gets; it does not start with two collectors."""
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
JVM_OPTIONS: Final = (
    # A third of the time of a JVM that runs every job once goes to its compilers: hot code stays hot for long,
    # and Spark's large methods are not enlarged.
    "-XX:CompileThresholdScaling=3",
    "-XX:FreqInlineSize=150",
    "-XX:InlineSmallCode=1500",
)
LOCAL_CONF: Final[Mapping[str, str]] = {
    "spark.driver.memory": "2g",
    # The state of a stream is stored in this many parts, and each is written with each batch.
    "spark.sql.shuffle.partitions": "2",
    # Other shuffles begin with many parts, and Spark merges small ones, so that one fits into memory.
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "32",
}
SMALL_BYTES: Final = 8 << 20
"""Size of local input in bytes up to which a session is configured for little work."""
SMALL_CONF: Final[Mapping[str, str]] = {
    # Compiling the code of a query, or planning it again after each shuffle, costs more than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Each aggregation and sort allocates a page, by default of 32 MB.
    "spark.buffer.pageSize": "1m",
}
SMALL_JVM_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    # Below it the JVM collects all of its garbage whenever its classes have outgrown the last limit, from 21 MB on.
    "-XX:MetaspaceSize=256m",
    # Java 17 generates a class for each method that is called by reflection more than 15 times.
    "-Dsun.reflect.inflationThreshold=2147483647",
)
SMALL_COLLECTOR: Final = "-XX:+UseSerialGC"
COMMON_CONF: Final[Mapping[str, str]] = {
    "spark.log.level": "ERROR",
    # Dates of partitions and minutes of groups must not depend on the driver's time zone.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    # A task writes to few directories; sorting its rows by directory costs more than opening some files.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.ui.showConsoleProgress": "false",
    # The program line of a column matters only to its author; to find it, Spark looks at the stack for each column.
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
}
TIMEOUT_S: Final = 30
"""Time limit in seconds for a program to print its version."""
IVY_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"{root}/></resolvers>
</ivysettings>
"""
"""The repository from which Spark fetches the connector. It is not the user's local Maven repository, Spark's
default, because Ivy fails on one that has a library's description without its jar.
"""
REPOSITORY_VARIABLE: Final = "DEFAULT_ARTIFACT_REPOSITORY"
"""The variable by which Spark lets users set a mirror of Maven Central."""
SPARK_CORE: Final = re.compile(r"spark-core_[\d.]+-(.+)\.jar")
PYTHON_PACKAGES: Final = ("numpy", "pandas", "pyarrow")
"""Packages that the jobs import in the executors' Python."""


def require_java() -> str:
    """Return the version output of the Java that Spark uses; raise PipelineError if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    where = f"JAVA_HOME={home}" if home else "the PATH"
    remedy = "install openjdk-17-jre-headless, or set JAVA_HOME to a Java 17 or 21"
    if java is None:
        raise PipelineError(f"Spark needs Java and {where} has none: {remedy}")
    process = subprocess.run(  # noqa: S603 - the Java that Spark itself would run
        [java, "-version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    match = re.search(r'version "(?:1\.)?(\d+)', process.stderr)
    if match is None:
        raise PipelineError(f"{java} does not print its version: {remedy}")
    if not OLDEST_JAVA <= int(match[1]) <= NEWEST_JAVA:
        raise PipelineError(f"{java} is Java {match[1]}, Spark {pyspark_version} needs 17: {remedy}")
    return process.stderr


def require_home() -> None:
    """Raise PipelineError if SPARK_HOME is another Spark than that of pyspark."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return
    versions = {
        match[1] for jar in Path(home, "jars").glob("spark-core_*.jar") if (match := SPARK_CORE.match(jar.name))
    }
    if versions != {pyspark_version}:
        contents = f"Spark {versions.pop()}" if versions else "no Spark"
        raise PipelineError(f"SPARK_HOME={home} is {contents}, and pyspark is {pyspark_version}: unset SPARK_HOME")


def require_python() -> None:
    """Raise PipelineError if PYSPARK_PYTHON is a Python in which executors cannot run the jobs."""
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    if python == sys.executable:
        return
    version = "{}.{}".format(*sys.version_info)
    program = f"import sys, {', '.join(PYTHON_PACKAGES)}; print('{{}}.{{}}'.format(*sys.version_info))"
    try:
        process = subprocess.run(  # noqa: S603 - the Python that Spark itself would run
            [python, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except OSError as error:
        trouble = f"cannot be run ({error.strerror})"
    else:
        last_line = (process.stderr.strip() or "no answer").splitlines()[-1]
        trouble = f"is Python {process.stdout.strip()}" if process.returncode == 0 else f"does not work ({last_line})"
        if trouble == f"is Python {version}":
            return
    needed = f"Python {version} with {', '.join(PYTHON_PACKAGES)}"
    raise PipelineError(f"PYSPARK_PYTHON={python} {trouble}, and the jobs need {needed}: unset PYSPARK_PYTHON")


def are_small(paths: Iterable[str]) -> bool:
    """Whether all paths are files and directories of this machine, with less than SMALL_BYTES together."""
    size_bytes = 0
    for path in map(Path, paths):
        if not path.exists():
            return False
        for file in path.rglob("*") if path.is_dir() else [path]:
            size_bytes += file.stat().st_size
    return size_bytes < SMALL_BYTES


def default_conf(master: str | None, *, kafka: bool = False, small: bool = False) -> dict[str, str]:
    """Return a session's default configuration; `kafka` adds the connector, `small` is for little data."""
    conf = dict(COMMON_CONF)
    if _is_here(master):
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if master is not None and master.startswith("local"):
        conf |= {**LOCAL_CONF, JAVA_OPTIONS: " ".join(_jvm_options(small=small))}
        conf |= SMALL_CONF if small else {}
    if kafka:
        conf["spark.jars.packages"] = KAFKA_CONNECTOR
    return conf


def _jvm_options(*, small: bool) -> tuple[str, ...]:
    chosen = " ".join(os.environ.get(name, "") for name in OPTIONS_FOR_ANY_JAVA)
    options, collector = (SMALL_JVM_OPTIONS, SMALL_COLLECTOR) if small else (JVM_OPTIONS, COLLECTOR)
    return options if CHOSEN_COLLECTOR.search(chosen) else (collector, *options)


@contextmanager
def spark_session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    kafka: bool = False,
    quiet: bool = False,
    small: bool = False,
    writes_archive: bool = False,
) -> Iterator[SparkSession]:
    """Start a session; it is stopped at the end of the context.

    `master` None means local[*], with `small` local[1], or the master of spark-submit if it runs this program.
    `quiet` stores the output of Spark's process and shows it only with an unexpected error; it is for a program's
    first session, which starts that process; its JVM reads the `class_archive`, and with `writes_archive` writes it
    if there is none. Raise PipelineError if something is missing.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    java = ""
    if not submitted:
        java = require_java()
        require_home()
        master = master or ("local[1]" if small else "local[*]")
    if _is_here(master):
        require_python()
    user_conf = dict(conf or {})
    settings = default_conf(master, kafka=kafka and not submitted and "spark.jars" not in user_conf, small=small)
    _prepare_environment(master)
    if master is not None:
        settings["spark.master"] = master
    settings |= {"spark.app.name": name, **user_conf}
    with ExitStack() as stack:
        java_output = stack.enter_context(KeptOutput()) if quiet and not submitted else None
        if java_output is not None and JAVA_OPTIONS in settings and JAVA_OPTIONS not in user_conf:
            archive_options = stack.enter_context(class_archive(java, write=writes_archive))
            settings[JAVA_OPTIONS] = " ".join((settings[JAVA_OPTIONS], *archive_options))
            stack.callback(java_output.end_process)
        if settings.get("spark.jars.packages") == KAFKA_CONNECTOR and "spark.jars.ivySettings" not in settings:
            settings["spark.jars.ivySettings"] = stack.enter_context(ivy_settings())
        session = _start(settings, java_output)
        try:
            yield session
        finally:
            session.stop()


def _start(settings: Mapping[str, str], java_output: KeptOutput | None) -> SparkSession:
    try:
        if java_output is not None:
            conf = SparkConf().setAll(list(settings.items()))
            SparkContext(conf=conf, gateway=java_output.launch(conf))
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise PipelineError(_why_no_session(settings, java_output)) from error


@contextmanager
def ivy_settings() -> Iterator[str]:
    """Yield the path of a file with IVY_SETTINGS; Spark reads it once, when it starts."""
    repository = os.environ.get(REPOSITORY_VARIABLE)
    root = "" if repository is None else f" root={quoteattr(repository)}"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "ivysettings.xml")
        path.write_text(IVY_SETTINGS.format(root=root), encoding="utf-8")
        yield str(path)


def _is_here(master: str | None) -> bool:
    return master is not None and master.startswith(("local", "spark://127.0.0.1", "spark://localhost"))


def _prepare_environment(master: str | None) -> None:
    """Make driver and workers on this machine use the loopback address and this Python."""
    if _is_here(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        # The program that builds the command line of Spark's JVM is a JVM, too.
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", f"{SMALL_COLLECTOR} {' '.join(SMALL_JVM_OPTIONS)}")


def _why_no_session(settings: Mapping[str, str], java_output: KeptOutput | None) -> str:
    offline = "download it with its dependencies and pass --conf spark.jars=FILE,..."
    if java_output is not None:
        if package := java_output.not_fetched():
            return f"Spark cannot fetch {package}: {offline}; --verbose shows what it tried"
        java_output.show()
    elif packages := settings.get("spark.jars.packages"):
        return f"Spark did not start; if {packages} could not be fetched (see above), {offline}"
    return "Spark did not start: its own messages are above; --conf changes its configuration"
