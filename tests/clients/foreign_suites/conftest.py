"""What the suites of other projects share."""

import json
import shutil
import subprocess

import pytest

DOWNLOAD_TIMEOUT_S = 600


@pytest.fixture
def go_module(require_or_skip, find_go, tmp_path):
    """Return a function that returns a directory with the files of a Go module, its tests among them."""

    def download(module):
        done = subprocess.run(
            [find_go(), "mod", "download", "-json", module],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=DOWNLOAD_TIMEOUT_S,
        )
        answer = json.loads(done.stdout or "{}")
        if "Dir" not in answer:
            require_or_skip(f"Go cannot download {module}: {answer.get('Error', done.stderr)}")
        # What Go keeps is read-only.
        return shutil.copytree(answer["Dir"], tmp_path / "module", copy_function=shutil.copyfile)

    return download
