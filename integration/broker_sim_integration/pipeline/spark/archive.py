"""The project's code as one archive, for spark-submit and executors on other machines."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import broker_sim_purgatory as purgatory

import broker_sim
import broker_sim_integration as integration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE: Final = "broker_sim.zip"
PROGRAM: Final = "broker_sim_pipeline.py"
PROGRAM_TEXT: Final = f'''"""What spark-submit runs; the code is in the archive next to it."""

from {integration.__name__}.pipeline.cli import main

if __name__ == "__main__":
    main()
'''
DATE: Final = (1980, 1, 1, 0, 0, 0)
"""A fixed date, so that the same code makes the same archive byte for byte."""
DIGEST_DIGITS: Final = 16
LEFT_OUT: Final = {".pyc"}
_NOT_A_USERS: Final = {"broker_sim", "broker_sim_integration", "broker_sim_purgatory", "site-packages"}
"""Folders whose modules executors already have, or get from `ship_code`."""


def write_archive(directory: Path) -> tuple[Path, Path]:
    """Write the archive and the program for spark-submit; return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    archive, program = directory / ARCHIVE, directory / PROGRAM
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for package in (purgatory, broker_sim, integration):
            (root,) = map(Path, package.__path__)
            for path in sorted(root.rglob("*")):
                if path.is_file() and path.suffix not in LEFT_OUT:
                    entry = zipfile.ZipInfo(str(root.name / path.relative_to(root)), DATE)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    bundle.writestr(entry, path.read_bytes())
    program.write_text(PROGRAM_TEXT, encoding="utf-8")
    return archive, program


def ship_code(spark: SparkSession) -> str:
    """Send this code to the executors, unless they run in the driver's process; return its digest.

    Their Python must have the packages that the code imports (crc32c, pyarrow).
    """
    # The archive can also be written without pyspark.
    from broker_sim_integration.pipeline.spark.driver import needs_code, send_code  # noqa: PLC0415

    submitted = getattr(integration.__loader__, "archive", None)
    if submitted is not None:
        return _digest(Path(submitted))  # spark-submit has sent it
    archive, _ = write_archive(_directory_of_process())
    if needs_code(spark):
        send_code(spark, archive)
    return _digest(archive)


def ship_modules(spark: SparkSession) -> str:
    """Send all modules of the current directory that are imported by now; return their digest.

    They are a user's own code. Modules imported later, or from elsewhere, are not sent.
    """
    from broker_sim_integration.pipeline.spark.driver import send_code  # noqa: PLC0415 - as above

    here = Path.cwd()
    paths = {
        path.relative_to(here)
        for module in tuple(sys.modules.values())
        if (name := getattr(module, "__file__", None)) is not None
        and (path := Path(name)).suffix == ".py"
        and path.is_relative_to(here)
    }
    own = sorted(path for path in paths if not _NOT_A_USERS.intersection(path.parts))
    archive = _directory_of_process() / "modules.zip"
    with zipfile.ZipFile(archive, "w") as bundle:
        for path in own:
            bundle.writestr(zipfile.ZipInfo(path.as_posix(), DATE), (here / path).read_bytes())
    digest = _digest(archive)
    # Each content has a name of its own, because executors cache fetched files by name.
    send_code(spark, archive.rename(archive.with_name(f"modules-{digest}.zip")))
    return digest


def _directory_of_process() -> Path:
    """Return a new directory that is removed when this process ends; until then executors may fetch files from it."""
    directory = Path(tempfile.mkdtemp(prefix="broker-sim-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _digest(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()[:DIGEST_DIGITS]
