"""An archive of Spark's classes in the user's cache, which halves the startup cost of its JVM.

The first run of all jobs writes it at its end, which takes some seconds; every later session on this machine reads
it. A JVM reads only an archive written by the same version with the same jars; both are part of the archive's name.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

READ: Final = "-XX:SharedArchiveFile="
WRITE: Final = "-XX:ArchiveClassesAtExit="
SILENT: Final = "-Xlog:cds*=off"
"""Some classes cannot be archived, and a JVM prints a line for each."""


def archive_path(java: str) -> Path:
    """Return the path of the archive for this Spark and for a Java that prints `java` as its version."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    key = hashlib.sha256(f"{java}\n{home}".encode()).hexdigest()[:12]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "broker-sim" / f"spark-{pyspark.__version__}-{key}.jsa"


@contextmanager
def class_archive(java: str, *, write: bool) -> Iterator[tuple[str, ...]]:
    """Yield the JVM's options for the archive: to read it, or with `write` to write it if there is none.

    A JVM with the options to write has to end before this context does.
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
    except OSError:  # The cache is not writable: the session starts without an archive.
        yield ()
        return
    click.echo(
        "If it succeeds, this run archives Spark's classes at its end, so that later sessions start faster.", err=True
    )
    with directory:
        unfinished = Path(directory.name, path.name)
        yield (SILENT, shlex.quote(f"{WRITE}{unfinished}"))
        if unfinished.exists():
            unfinished.replace(path)
