"""The picture in the documentation is what a timer really looks like."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_picture_in_the_documentation_is_drawn_from_live_state():
    draw = runpy.run_path(str(ROOT / "tools" / "draw_wheel.py"))["draw"]
    picture = (ROOT / "docs" / "how" / "wheel.svg").read_text(encoding="utf-8")
    assert picture == draw(), "run: python -m tools.draw_wheel"
