"""Finds the C library that programs in virtual time load, and compiles it at first use.

A native wheel contains it. Otherwise this machine's C compiler builds it in a second, and it is kept in the user's
cache under a hash of its sources. Imports the standard library only: `hatch_build.py` runs this file.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

NAME: Final = "virtual_time.so"
SOURCES: Final = Path(__file__).parent / "library"
MACHINES: Final = ("x86_64", "aarch64")
FLAGS: Final = (
    "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden", "-U_FORTIFY_SOURCE",
    "-fno-builtin",
)  # fmt: skip
LIBRARIES: Final = ("-ldl", "-lpthread")
COMPILERS: Final = ("cc", "gcc", "clang")


class NoVirtualProgramsError(RuntimeError):
    """This machine cannot run programs in virtual time; the text says in one line what is missing."""


def check_machine() -> None:
    """Raise NoVirtualProgramsError if the library cannot work on this machine."""
    libc, _ = platform.libc_ver()
    if sys.platform == "linux" and platform.machine() in MACHINES and libc == "glibc":
        return
    here = f"{platform.system()} with {libc or 'another C library'} on {platform.machine()}"
    raise NoVirtualProgramsError(
        f"programs in virtual time need Linux with glibc on {' or '.join(MACHINES)}, and this is {here}; "
        "run the tests in Docker, in an image such as python:3.12"
    )


@cache
def library() -> Path:
    """Return the path of the library, compiled if necessary. Raises NoVirtualProgramsError."""
    check_machine()
    if (ready := SOURCES / NAME).exists():
        return ready
    key = hashlib.sha256(_sources() + " ".join((*FLAGS, platform.machine(), *platform.libc_ver())).encode())
    path = _cache() / f"virtual_time-{key.hexdigest()[:16]}.so"
    if not path.exists():
        compile_library(path)
    return path


def _sources() -> bytes:
    return b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]")))


@cache
def fingerprint() -> str:
    """Return all that a program's run depends on besides its seed: kernel, C library, Python, this library."""
    return (
        f"{platform.system()} {platform.release()} on {platform.machine()}, {' '.join(platform.libc_ver())}, "
        f"Python {platform.python_version()}, library {hashlib.sha256(_sources()).hexdigest()[:8]}"
    )


def _cache() -> Path:
    """Return the user's cache folder, or one for temporary files if that is not writable."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "broker-sim"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="broker-sim-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="broker-sim-"))


def compile_library(path: Path, *flags: str) -> None:
    """Compile the library into `path`, which appears complete. Raises NoVirtualProgramsError."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise NoVirtualProgramsError(
            "programs in virtual time need a C compiler once, and there is none: apt-get install gcc libc6-dev"
        )
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    os.close(descriptor)
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    command = [*compiler.split(), *FLAGS, *flags, "-o", unfinished, *sources, *LIBRARIES]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    except OSError as error:
        raise NoVirtualProgramsError(f"the C compiler {compiler!r} cannot be run: {error.strerror}") from None
    if done.returncode:
        Path(unfinished).unlink()
        line = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise NoVirtualProgramsError(f"{compiler} cannot compile the library of programs in virtual time: {line}")
    Path(unfinished).chmod(0o755)
    Path(unfinished).replace(path)


if __name__ == "__main__":
    check_machine()
    compile_library(Path(sys.argv[1]))
