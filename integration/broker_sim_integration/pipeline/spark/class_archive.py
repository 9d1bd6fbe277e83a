"""An archive of Spark's classes in the user's cache, which halves what the start of its JVM costs.

The first run of all jobs writes it when it ends, which takes some seconds; every later session on this machine reads
it. A JVM reads only what one of the same version with the same jars has written; both are in the archive's name.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

READ: Final = "-XX:SharedArchiveFile="
WRITE: Final = "-XX:ArchiveClassesAtExit="
SILENT: Final = "-Xlog:cds*=off"
"""Some classes cannot be archived, and a JVM has a line for each."""


def archive_path(java: str) -> Path:
    """Return where the archive is for a Java that prints `java` as its version, and this Spark."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    key = hashlib.sha256(f"{java}\n{home}".encode()).hexdigest()[:12]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "broker-sim" / f"spark-{pyspark.__version__}-{key}.jsa"


@contextmanager
def class_archive(java: str, *, write: bool) -> Iterator[tuple[str, ...]]:
    """Yield the JVM's options for the archive: to read it, or with `write` to write it if there is none.

    A JVM that got options to write has to end before this context does.
    """
    path = archive_path(java)
    if path.exists():
        yield (SILENT, shlex.quote(f"{READ}{path}"))
        return
    if not write:
        yield ()
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        directory = tempfile.TemporaryDirectory(dir=path.parent)
    except OSError:  # The cache cannot be written: it goes without.
        yield ()
        return
    with directory:
        unfinished = Path(directory.name, path.name)
        yield (SILENT, shlex.quote(f"{WRITE}{unfinished}"))
        if unfinished.exists():
            unfinished.replace(path)
