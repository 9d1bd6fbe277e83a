"""A file with the results of the soak so far, valid for one state of the tree."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PATH: Final = ROOT / "out" / "soak" / "report.json"


@dataclass(frozen=True)
class Outcome:
    """The result of a part."""

    passed: bool
    seconds: float
    failed_command: str | None = None


def tree() -> str:
    """Return git's id of the working tree's current content, committed or not."""
    with tempfile.TemporaryDirectory() as directory:
        variables = {**os.environ, "GIT_INDEX_FILE": f"{directory}/index"}

        def git(*words: str) -> str:
            done = subprocess.run(["git", *words], cwd=ROOT, env=variables, check=True, capture_output=True, text=True)
            return done.stdout.strip()

        git("read-tree", "HEAD")
        git("add", "--all")
        return git("write-tree")


def read(of_tree: str) -> dict[str, Outcome]:
    """Return the outcomes by part; none if the file is about another tree."""
    if not PATH.exists():
        return {}
    document = json.loads(PATH.read_text("utf-8"))
    if document["tree"] != of_tree:
        return {}
    return {name: Outcome(**outcome) for name, outcome in document["parts"].items()}


def kept(of_tree: str, part: str) -> Path:
    """Return the directory for files from which an interrupted part continues on this tree."""
    return PATH.parent / "kept" / of_tree / part


def write(of_tree: str, outcomes: dict[str, Outcome]) -> None:
    """Replace the file."""
    parts = {name: asdict(outcome) for name, outcome in outcomes.items()}
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(json.dumps({"tree": of_tree, "parts": parts}, indent=2) + "\n", "utf-8")
