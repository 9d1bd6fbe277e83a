"""Operations that need a driver in this process; a client of Spark Connect works without them.

All other parts of the pipeline use the session, and run in both. This module has the parts that no session
offers: Hadoop's file systems (`_jvm`, `_jsc`), and of the context the log level and the number of cores. A
Spark Connect server has all of these in its own process: it creates directories when it writes to them, writes
its own log, and distributes work according to its own configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql.utils import is_remote

from broker_sim_integration.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def make_directory(spark: SparkSession, directory: str) -> None:
    """Create the directory of the tables, on any file system; raise PipelineError if that fails."""
    if is_remote():
        return
    context: Any = spark.sparkContext
    try:
        path = context._jvm.org.apache.hadoop.fs.Path(directory)  # noqa: SLF001 - the only way to them
        created = path.getFileSystem(context._jsc.hadoopConfiguration()).mkdirs(path)  # noqa: SLF001 - the same
    except Py4JJavaError as error:
        reason = error.java_exception.getMessage()
        raise PipelineError(f"cannot write to {directory}: {reason}") from error
    if not created:
        raise PipelineError(f"cannot write to {directory}: choose another --output")


def forget_process() -> None:
    """Make pyspark forget Spark's process, which has ended, so that the next session starts another one."""
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - the only way


def cores(spark: SparkSession) -> int:
    """Return the number of tasks that run at once, or that a server is configured for."""
    if is_remote():
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return spark.sparkContext.defaultParallelism


def log_level(spark: SparkSession, level: str | None = None) -> None:
    """Set the log level; None restores the session's own."""
    if is_remote():
        return
    context = spark.sparkContext
    context.setLogLevel(level or str(context.getConf().get("spark.log.level", "WARN")))


def needs_code(spark: SparkSession) -> bool:
    """Return whether executors run elsewhere and do not have this project's code yet."""
    if is_remote():
        return True
    context = spark.sparkContext
    submitted = context.getConf().contains("spark.submit.pyFiles")
    return not (submitted or str(context.master).startswith("local"))


def send_code(spark: SparkSession, archive: Path) -> None:
    """Send an archive to the executors, and add it to their Python path."""
    if is_remote():
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))
