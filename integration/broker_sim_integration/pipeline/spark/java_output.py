"""The output of Spark's own process, stored and shown only when it is needed.

If something is missing, Spark, Ivy and the JVM print pages with stack traces; the one line with the remedy
would follow after them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.java_gateway import launch_gateway

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.spark.driver import forget_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark import SparkConf

LAUNCH: Final[Callable[..., Any]] = launch_gateway
"""Spark has no types for it."""
NOT_FETCHED: Final = re.compile(r"(?:unresolved dependency|download failed): ([^#\s]+)#([^;\s]+);([^:!\s]+)")


class KeptOutput:
    """Standard output and error of the process that `launch` starts.

    As a context manager it shows them on any error except PipelineError.
    """

    def __init__(self) -> None:
        # A file and not a pipe, so that no reader is needed while the process writes.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the context's end
        self._gateway: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PipelineError):
            self.show()
        self._file.close()

    def launch(self, conf: SparkConf) -> Any:
        """Start Spark's process and return its gateway; raise PySparkRuntimeError if it ends too early."""
        self._gateway = LAUNCH(conf, {"stdout": self._file, "stderr": self._file})
        return self._gateway

    def end_process(self) -> None:
        """End the process and wait for it; a later session starts another one."""
        if self._gateway is None:
            return
        self._gateway.shutdown()
        # The process ends by itself when its stdin is closed.
        self._gateway.proc.stdin.close()
        self._gateway.proc.wait()
        forget_process()

    def text(self) -> str:
        """Return the output so far."""
        # The process writes at this file's position, so reading must not move it.
        file = self._file.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def show(self) -> None:
        """Print the stored output."""
        sys.stderr.write(self.text())

    def not_fetched(self) -> str | None:
        """Return the package that could not be fetched, as group:name:version, or None."""
        match = NOT_FETCHED.search(self.text())
        return None if match is None else ":".join(match.groups())
