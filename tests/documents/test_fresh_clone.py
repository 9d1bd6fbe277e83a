"""README.md, typed from its first to its last command by a new user: a fresh clone and nothing else."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.install, pytest.mark.soak(part="wheels")]

LIMIT_S = 600
HERE = Path(__file__)
PAGES = runpy.run_path(str(HERE.with_name("pages.py")))
ROOT = PAGES["ROOT"]


@pytest.fixture
def clone(tmp_path):
    """Copy what git has, and would have with the next commit."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    directory = tmp_path / "broker-sim"
    for name in map(os.fsdecode, listed.stdout.split(b"\0")[:-1]):
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
    return directory


def _typed(block):
    by = block.words.get("by", "")
    return by in {"", HERE.relative_to(ROOT).as_posix()}


@pytest.mark.clients
def test_a_new_user_types_the_readme(package_index, clone, play, tmp_path):
    if shutil.which("kcat") is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("kcat is missing: apt-get install -y --no-install-recommends kcat")
    blocks = [block for block in PAGES["read_page"](ROOT / "README.md").blocks if _typed(block)]
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=LIMIT_S)
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    play(blocks, clone, limit_s=LIMIT_S, PATH=path, DOCUMENTS_ROOT=str(clone))
