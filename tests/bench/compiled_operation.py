"""A native purgatory with the benchmarks' operation compiled along, as the simulator's own are.

mypyc makes calls native only among modules that are compiled together. Built once, into the cache.
"""

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from integration.reference.cache import cached_directory
from integration.reference.errors import ReferenceUnavailableError

ROOT = Path(__file__).parents[2]
PURGATORY = ROOT / "purgatory"
OPERATION = Path(__file__).with_name("purgatory_operation.py")
TIMEOUT_S = 300


def build_compiled_operation() -> Path:
    """Return the directory to put before others in PYTHONPATH."""
    sources = [*sorted(PURGATORY.glob("*.py")), OPERATION, Path(__file__)]
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    name = f"compiled-operation-{sys.implementation.cache_tag}-{digest}"
    return cached_directory(name, _build, timeout_s=TIMEOUT_S)


def _build(directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, __file__, str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise ReferenceUnavailableError(lines[-1])


def _compile(target: Path, modules: list[str]) -> None:
    from mypyc.build import mypycify
    from setuptools import setup

    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(PURGATORY, Path(directory, "purgatory"))
        shutil.copy(OPERATION, directory)
        shutil.copytree(PURGATORY, target / "purgatory")
        with contextlib.chdir(directory):
            setup(
                name="operation",
                packages=["purgatory"],
                ext_modules=mypycify([*modules, OPERATION.name], opt_level="3"),
                script_args=["--quiet", "build_ext", "--build-lib", str(target)],
            )


if __name__ == "__main__":
    # hatch_build.py itself can only be imported where hatchling is.
    hook = (ROOT / "hatch_build.py").read_text(encoding="utf-8")
    hot = [f"purgatory/{name}.py" for name in re.findall(r'"purgatory\.(\w+)"', hook)]
    _compile(Path(sys.argv[1]).resolve(), hot)
