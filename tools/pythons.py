"""Finds the supported Pythons on this machine, one of each minor version.

`python -m tools.pythons` prints version and path of each, oldest first. On stderr it lists the versions of
pyproject.toml that are missing, and how to install them.
`python -m tools.pythons newest` prints the newest one alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

PROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"
CLASSIFIER: Final = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
OLDEST: Final = (3, 11)
PROGRAM: Final = re.compile(r"python3\.(\d+)")
TIMEOUT_S: Final = 30
WHO_ARE_YOU: Final = (
    "import ensurepip, sys, venv; assert sys.implementation.name == 'cpython' and sys.version_info[3]"
    " == 'final'; print(sys.version_info[0], sys.version_info[1])"
)


def find_pythons() -> dict[tuple[int, int], Path]:
    """Return the paths by version: the running Python, those of pyenv and uv, and those on PATH.

    A Python that cannot create environments (venv, ensurepip), or is not a release, is left out.
    """
    found = {sys.version_info[:2]: Path(sys.executable)}
    for version, program in _candidates():
        if version not in found and version >= OLDEST and _version(program) == version:
            found[version] = program
    return dict(sorted(found.items()))


def missing(found: Container[tuple[int, int]]) -> str | None:
    """Return one line about the missing supported versions, None without any."""
    classifiers = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["classifiers"]
    supported = [(3, int(named[1])) for each in classifiers if (named := CLASSIFIER.fullmatch(each))]
    absent = ["{}.{}".format(*version) for version in supported if version not in found]
    if not absent:
        return None
    names = " ".join(absent)
    return f"not found here: Python {names}; get it by: uv python install {names}, or: pyenv install {names}"


def _candidates() -> Iterator[tuple[tuple[int, int], Path]]:
    """Yield programs that may be a Python, with the version in their names."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    data = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", data / "uv" / "python"))
    # Before PATH, where pyenv has shims for all versions, which run only the chosen ones.
    installed = [*sorted(pyenv.glob("versions/*/bin"), reverse=True), *sorted(uv.glob("cpython-*/bin"), reverse=True)]
    for directory in [*installed, *map(Path, os.get_exec_path())]:
        for program in sorted(directory.glob("python3.*")):
            if named := PROGRAM.fullmatch(program.name):
                yield (3, int(named[1])), program


def _version(program: Path) -> tuple[int, int] | None:
    """Return the version that the program reports, None if it does not run or lacks a module."""
    try:
        asked = subprocess.run(
            [program, "-c", WHO_ARE_YOU], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if asked.returncode != 0:
        return None
    major, minor = map(int, asked.stdout.split())
    return major, minor


if __name__ == "__main__":
    pythons = find_pythons()
    is_newest = sys.argv[1:] == ["newest"]
    for (major, minor), program in list(pythons.items())[-1 if is_newest else 0 :]:
        print(f"{major}.{minor} {program}")
    if not is_newest and (line := missing(pythons)) is not None:
        print(line, file=sys.stderr)
