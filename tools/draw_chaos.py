"""Draw `broker-sim chaos`: `python -m tools.draw_chaos` writes docs/chaos/chaos.svg.

The picture is a run of the application and the test of docs/chaos/index.md: the seed that fails, the one fault that is
left of four, and the time line. Only times of this machine and what a test repeats are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.text import Text

from tools.terminal_picture import picture

PAGES: Final = Path(__file__).parents[1] / "docs" / "chaos"
TARGET: Final = PAGES / "chaos.svg"
WIDTH: Final = 104
FILE: Final = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND: Final = "broker-sim chaos test_chaos:test_no_order_is_lost --seeds 1"
LEFT_OUT: Final = re.compile(r"^seeds |^$|REBALANCE_IN_PROGRESS|MEMBER_ID_REQUIRED|^0 of 1|^ {2}1 failed")
VARIES: Final = re.compile(r" in [0-9.]+s$|, trace [0-9a-f]{16}, repeats$|^\.\s+\[100%\]$")
TEST: Final = "import test_chaos"
STYLES: Final = {
    r"^\$ .*": "bold",
    r"\bFAULT\b.*": "red",
    r"seed 0 fails$|never delivered.*": "bold red",
    r"^4 faults -> 1.*": "bold green",
    r"^ +time  who +what$": "dim",
}


def draw() -> str:
    """Return the picture of a run."""
    text = Text("\n".join(_session(COMMAND)))
    for pattern, style in STYLES.items():
        text.highlight_regex(f"(?m){pattern}", style)
    return picture(text, "broker-sim chaos", "chaos", WIDTH)


def _session(command: str) -> list[str]:
    """Return a command and what it prints, to the test that it suggests."""
    with tempfile.TemporaryDirectory() as directory:
        for file in FILE.finditer((PAGES / "index.md").read_text(encoding="utf-8")):
            Path(directory, file[1]).write_text(file[2], encoding="utf-8")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
        done = subprocess.run(command, shell=True, cwd=directory, env=environment, capture_output=True, text=True)  # noqa: PLW1510
    printed = _steady(done.stdout.split(TEST)[0])
    return [f"$ {command}", *(line for line in printed if not LEFT_OUT.search(line))]


def _steady(text: str) -> list[str]:
    """Return the lines of a text without parts that differ from run to run."""
    return [VARIES.sub("", line.rstrip()) for line in text.splitlines()]


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")
