"""Virtual environments of clients in other versions, or for other Pythons, kept in a cache directory."""

import os
import subprocess
import sys
from pathlib import Path

INSTALL_TIMEOUT_S = 300


class NotInstalledError(Exception):
    """An environment could not be made; the text is one line with the remedy."""


def python_with(requirement, interpreter=sys.executable):
    """Return the Python of an environment of `interpreter` that has `requirement`, such as "aiokafka==0.13.0".

    Made once with pip's own settings, then reused by later runs. Raises NotInstalledError.
    """
    version = _run([interpreter, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).stdout.strip()
    home = _cache() / f"{requirement.replace('==', '-')}-py{version}"
    python = home / "bin" / "python"
    complete = home / "made"
    if complete.exists():
        return python
    for command in (
        [interpreter, "-m", "venv", "--clear", "--without-pip", "--symlinks", home],
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", requirement],
    ):
        process = _run(command)
        if process.returncode != 0:
            reason = (process.stderr.strip().splitlines() or ["it gives no reason"])[-1]
            raise NotInstalledError(f"pip install {requirement} fails: {reason}; check pip's index")
    complete.touch()
    return python


def _run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_S)


def _cache():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "broker-sim" / "clients"
    path.mkdir(parents=True, exist_ok=True)
    return path
