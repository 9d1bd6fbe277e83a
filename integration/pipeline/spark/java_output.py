"""What Spark's own process prints, kept until somebody needs it.

Spark, Ivy and the JVM have a page or two to say to a user who lacks something, stack traces included;
the line with the remedy would stand below all that.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.java_gateway import launch_gateway

from integration.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark import SparkConf

__all__ = ["KeptOutput"]

LAUNCH: Final[Callable[..., Any]] = launch_gateway
"""Spark gives it no types."""
NOT_FETCHED: Final = re.compile(
    r"(?:unresolved dependency|download failed): ([^#\s]+)#([^;\s]+);([^:!\s]+)"
)


class KeptOutput:
    """Standard output and error of the process that `launch` starts.

    As a context it shows them when it is left by an error that is no PipelineError.
    """

    def __init__(self) -> None:
        # A file and not a pipe: nobody has to read while the process writes.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the context's end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PipelineError):
            self.show()
        self._file.close()

    def launch(self, conf: SparkConf) -> Any:
        """Start Spark's process and return its gateway; raises PySparkRuntimeError if it ends before it can be talked to."""
        return LAUNCH(conf, {"stdout": self._file, "stderr": self._file})

    def text(self) -> str:
        """Return all that has been printed so far."""
        # The process writes where this file stands, so that must not be moved by reading.
        file = self._file.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def show(self) -> None:
        """Print it after all."""
        sys.stderr.write(self.text())

    def not_fetched(self) -> str | None:
        """Return the package that could not be fetched, as group:name:version, if that was said."""
        found = NOT_FETCHED.search(self.text())
        return None if found is None else ":".join(found.groups())
